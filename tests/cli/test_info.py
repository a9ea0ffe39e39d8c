"""`situate info`."""

from __future__ import annotations

from situate.writers import situate_json
from tests.cli.conftest import diamond


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


def test_warnings_of_the_file_go_to_stderr(situate, tmp_path):
    situate_json.write(diamond(warnings=("beware \x1b[31m",)), tmp_path / "warned.json")
    run = situate("info", "warned.json", "--json")
    assert run.err == "warning: beware \\x1b[31m\n"
    assert run.json["ops"] == 4


def test_a_missing_file_is_refused(situate):
    run = situate("info", "no.json")
    assert (run.status, run.out) == (2, "")
    assert run.err == "error: no.json: no such file\n"
