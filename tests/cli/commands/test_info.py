"""`situate info`."""

from __future__ import annotations

from situate.data import graph_json
from situate.data.graph import Graph, Op, Tensor
from tests.cli.conftest import diamond


# Text and JSON count the same things.
def test_text_counts_ops_and_sizes(situate, model):
    run = situate("info", model)
    assert run.status == 0
    lines = [line.split() for line in run.out.splitlines()]
    assert ["ops", "4"] in lines
    assert ["control", "edges", "0"] in lines


def test_json_counts_ops_and_sizes(situate, model):
    content = situate("info", model, "--json").json
    assert content["ops"] == 4
    assert content["tensor_bytes"] == 4000
    assert content["kinds"] == {"op": 4}
    assert content["hash"] == diamond().hash


def test_text_and_json_count_a_parameter_once(situate, tmp_path):
    ops = (Op("w", kind="parameter", persistent=2**20), Op("mm", flops=8))
    tensors = (
        Tensor("tw", 0, 2**20, (1,), resident=True),
        Tensor("out", 1, 2**10, output=True),
    )
    graph_json.write(Graph("held", ops, tensors), tmp_path / "held.json")
    assert situate("info", "held.json", "--json").json["tensor_bytes"] == 2**10
    text = " ".join(situate("info", "held.json").out.split())
    assert "tensors 2, 1.00 KiB beside what is held" in text
    assert "held for the step 1.00 MiB" in text


def test_json_has_the_work_and_the_times_that_the_table_shows(situate, tmp_path):
    ops = (
        Op("a", kind="k", phase="forward", flops=3, seconds={"cpu": 1.5}),
        Op("b", kind="k", phase="backward", flops=1, seconds={"cpu": 2.0, "gpu": 1.0}),
    )
    graph_json.write(Graph("work", ops), tmp_path / "work.json")
    content = situate("info", "work.json", "--json").json
    assert content["longest_chain_flops"] == 3
    assert content["phase_flops"] == {"forward": 3, "backward": 1}
    assert content["kind_flops"] == {"k": 4}
    assert content["seconds"] == {"cpu": 3.5, "gpu": 1.0}


def test_warnings_of_the_file_go_to_stderr(situate, tmp_path):
    graph_json.write(diamond(warnings=("beware \x1b[31m",)), tmp_path / "warned.json")
    run = situate("info", "warned.json", "--json")
    assert run.err == "warning: beware \\x1b[31m\n"
    assert run.json["ops"] == 4


def test_a_missing_file_is_refused(situate):
    run = situate("info", "no.json")
    assert (run.status, run.out) == (2, "")
    assert run.err == "error: no.json: no such file\n"
