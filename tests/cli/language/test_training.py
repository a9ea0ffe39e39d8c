"""Training layouts on the command line."""

from __future__ import annotations

import json

import pytest

from situate import Cluster, Plan, Problem, read
from tests.language.planning.homes import MIXTURE

SIZES = "layers=24,hidden=1024,heads=16,ffn=4096,vocab=50304"


@pytest.fixture
def config(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(MIXTURE))
    return "config.json"


# A layout of one's own.
def test_a_layout_is_priced(situate, config):
    options = ("--layout", "dp=4,tp=2,ep=4,seq=2048", "--cluster", "h100-8")
    run = situate("plan", config, *options)
    assert run.status == 0
    for text in (
        "step time",
        "tokens/s",
        "MFU",
        "GiB",
        "Megatron-LM: CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun",
    ):
        assert text in run.out
    content = situate("plan", config, *options, "--json").json
    assert content["degrees"]["ep"] == 4
    assert content["step_seconds"] > 0


def test_a_layout_without_room_has_its_own_status(situate):
    text = "layers=80,hidden=8192,heads=64,vocab=32000"
    run = situate("plan", text, "--layout", "recipe=amp", "--cluster", "RTX 4090")
    assert run.status == 3
    assert "does not fit" in run.out


# The search.
def test_auto_has_ten_layouts_at_most(situate, config):
    options = ("--layout", "auto,batch=32,seq=2048", "--cluster", "h100-8")
    content = situate("plan", config, *options, "--json").json
    seconds = [row["step_seconds"] for row in content["layouts"]]
    assert seconds == sorted(seconds)
    assert 1 <= len(seconds) <= 10
    assert content["fitting"] <= content["legal"]
    assert "layouts fit" in situate("plan", config, *options).out


def test_unequal_gpus_have_shares(situate):
    layout = "auto,recipe=amp,batch=32,seq=1024"
    options = ("--layout", layout, "--cluster", "unequal-24-12", "--time-limit", "0.1")
    content = situate("plan", SIZES, *options, "--json").json
    assert {row["way"] for row in content["unequal"]} == {"samples", "layers"}
    assert len(content["simulated"]) == 1 + len(content["unequal"])


def test_a_search_from_unequal_shares_is_no_slower(situate):
    layout = "auto,recipe=amp,batch=8,seq=1024"
    options = ("--layout", layout, "--cluster", "unequal-24-12", "--time-limit", "0.3")
    for row in situate("plan", SIZES, *options, "--json").json["simulated"]:
        step = row["step"]
        assert step["floor"] <= step["best"] <= step["seconds"]


def test_evaluations_make_a_search_repeatable(situate):
    layout = ("--layout", "dp=2,tp=2,pp=2,batch=8,seq=1024", "--cluster", "h100-8")
    options = (*layout, "--evaluations", "40", "--seed", "3", "--json")
    one, two = (
        situate("plan", SIZES, *options, "--threads", threads).json["simulated"]
        for threads in ("1", "2")
    )
    assert one == two
    assert one["best"] <= one["seconds"]


# The best layouts are planned as graphs.
def test_the_best_layouts_are_simulated(situate, config):
    options = ("--layout", "auto,batch=32,seq=2048", "--cluster", "h100-8")
    content = situate("plan", config, *options, "--json").json
    rows = content["simulated"]
    assert [row["layout"] for row in rows] == [row["layout"] for row in content["layouts"]]
    for row in rows:
        assert row["step"]["floor"] <= row["step"]["seconds"] * (1 + 1e-9)
        assert row["step"]["best"] is None
    assert "planned as graphs" in situate("plan", config, *options).out


def test_a_layout_s_plan_belongs_to_its_graph(situate, tmp_path):
    options = ("--layout", "dp=2,tp=2,pp=2,batch=8", "--cluster", "h100-8")
    files = ("--out", "plan.json", "--report", "report.html", "--time-limit", "0.3")
    assert situate("convert", SIZES, "step.json", *options).status == 0
    assert situate("plan", SIZES, *options, *files).status == 0
    graph, plan = read(tmp_path / "step.json"), Plan.read(tmp_path / "plan.json")
    problem = Problem(graph, Cluster.preset("h100-8"))
    plan.schedule(problem).verify(problem)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_converted_layout_is_planned_by_any_method(situate):
    options = ("--layout", "dp=8,batch=8,seq=1024", "--cluster", "8xH100")
    assert situate("convert", SIZES, "step.json", *options).status == 0
    plan = ("--cluster", "8xH100", "--method", "heft", "--json")
    assert situate("plan", "step.json", *plan).json["feasible"]


def test_two_replicas_stand_for_all_of_many(situate):
    layout = ("--layout", "dp=512,batch=1024,seq=128", "--cluster", "64x8xH100")
    assert "ops on 2 of 512 GPUs" in situate("plan", SIZES, *layout).out
    step = situate("plan", SIZES, *layout, "--json").json["simulated"]
    assert (step["devices"], step["gpus"]) == (2, 512)


def test_all_layouts_of_the_table_are_simulated(situate, config):
    options = ("--layout", "auto,batch=64,seq=2048", "--cluster", "64x8xH100", "--json")
    content = situate("plan", config, *options).json
    assert len(content["simulated"]) == len(content["layouts"]) > 3


def test_a_step_of_too_many_ops_is_priced_alone(situate):
    layout = ("--layout", "pp=8,batch=65536,seq=128")
    options = (*layout, "--cluster", "h100-8", "--out", "plan.json")
    run = situate("plan", SIZES, *options)
    assert "did not write plan.json: no layout is simulated" in run.err
    assert "is not simulated: --layout: the step has more than" in run.err


def test_nothing_that_fits_has_its_own_status(situate):
    run = situate("plan", SIZES, "--layout", "auto,seq=16777216,batch=1", "--cluster", "RTX 3060")
    assert run.status == 3
    assert "no layout fits" in run.out
    assert "LoRA" in run.out


def test_layouts_stand_side_by_side(situate, config):
    text = "auto,batch=32,seq=2048;tp=2,batch=32,seq=2048;recipe=amp,batch=32,seq=2048"
    options = ("--layout", text, "--cluster", "h100-8")
    rows = situate("compare", config, *options, "--json").json["layouts"]
    assert len(rows) == 3
    seconds = [row["step_seconds"] for row in rows]
    assert seconds == sorted(seconds)
    assert "tp=2" in situate("compare", config, *options).out
    nothing = situate("compare", config, "--layout", ";", "--cluster", "h100-8")
    assert (nothing.status, nothing.err.count("\n")) == (2, 1)


def test_explain_has_no_layouts(situate, config):
    run = situate("explain", config, "--layout", "tp=2", "--cluster", "h100-8")
    assert run.status == 2
    assert "--layout" in run.err


# Bad input: one line, status 2.
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--layout", "tp=2"), "give --cluster"),
        (("--layout", "tp=3", "--cluster", "h100-8"), "6 devices, and the cluster has 8 GPUs"),
        (("--layout", "auto,tp=3", "--cluster", "h100-8"), "chooses tp"),
        (("--layout", "tp=2", "--cluster", "8xH1000"), "no GPU 'H1000'"),
        (
            ("--layout", "tp=2", "--cluster", "h100-8", "--method", "heft"),
            "--method: has no meaning",
        ),
        (("--layout", "ep=3,tp=1", "--cluster", "3xH100"), "ep 3 does not divide 16 experts"),
    ],
)
def test_bad_input_is_one_line(situate, config, options, message):
    run = situate("plan", config, *options)
    assert run.status == 2
    assert message in run.err
    assert run.err.count("\n") == 1


@pytest.mark.parametrize("model", ["nowhere", "inception_v3", "layers=1,hidden=1"])
def test_a_model_without_a_transformer_is_one_line(situate, model):
    run = situate("plan", model, "--layout", "tp=1", "--cluster", "h100-8")
    assert run.status == 2
    assert run.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--layout", "tp=2"), "give --cluster"),
        (("--layout", "auto", "--cluster", "h100-8"), "'situate plan --layout auto' chooses"),
        (("--cluster", "h100-8"), "--cluster is for training steps: give --layout"),
        (("--layout", "tp=2", "--cluster", "h100-8", "--depth", "1"), "leave it out"),
    ],
)
def test_bad_input_of_convert_is_one_line(situate, config, options, message):
    run = situate("convert", config, "step.json", *options)
    assert run.status == 2
    assert message in run.err
    assert run.err.count("\n") == 1
