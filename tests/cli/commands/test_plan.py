"""`situate plan`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.data import graph_json
from situate.data.graph import Graph, Op, Tensor
from situate.results.plan import Plan

KEYS = {
    "method",
    "decoder",
    "objective",
    "value",
    "lower_bound",
    "bounded_by",
    "gap",
    "optimal",
    "feasible",
    "makespan",
    "expected",
    "throughput",
    "peak_memory",
    "devices_used",
    "evaluations",
    "seconds",
    "seed",
    "samples",
    "rules",
    "unit",
    "graph",
    "cluster",
}

QUICK = ("--evaluations", "200")


# The answer is complete, as text and as JSON.
def test_json_is_one_object_with_every_promised_key(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--json", *QUICK)
    assert run.status == 0
    assert run.json.keys() >= KEYS
    assert run.json["makespan"] == pytest.approx(3.001)
    assert set(run.json["peak_memory"]) == {"gpu0", "gpu1"}


def test_text_names_the_value_the_bound_and_every_device(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, *QUICK)
    assert run.status == 0
    for word in ("diamond", "pair", "gpu0", "gpu1", "3.00 s"):
        assert word in run.out


def test_a_full_disk_does_not_take_the_answer(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--json", "--out", "/dev/full", *QUICK)
    assert run.json["makespan"] == pytest.approx(3.001)
    assert (run.status, run.err.count("error: cannot write '/dev/full'")) == (2, 1)


def test_no_progress_is_written_off_a_terminal(situate, model, pair):
    assert situate("plan", model, "--cluster", pair, *QUICK).err == ""


# Files hold the plan that the answer reports.
def test_the_plan_written_replays_to_the_value_reported(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--out", "plan.json", "--json", *QUICK)
    explained = situate("explain", model, "plan.json", "--cluster", pair, "--json")
    assert Plan.read("plan.json")
    assert explained.json["makespan"] == run.json["makespan"]


def test_the_schedule_written_holds_every_op_and_transfer(situate, model, pair):
    situate("plan", model, "--cluster", pair, "--schedule", "schedule.json", *QUICK)
    content = json.loads(Path("schedule.json").read_text())
    assert [op["name"] for op in content["ops"]] == ["a", "b", "c", "d"]
    assert len(content["transfers"]) == 2
    assert content["unit"] == "s"
    assert content["rules"] == "situate"


@pytest.mark.parametrize("name", ["plan.svg", "plan.png"])
def test_a_picture_is_drawn(situate, model, pair, name):
    pytest.importorskip("matplotlib")
    run = situate("plan", model, "--cluster", pair, "--picture", name, *QUICK)
    assert run.status == 0
    assert Path(name).stat().st_size > 1000


# Options reach the search.
def test_same_seed_and_evaluations_give_the_same_plan(situate, model, pair):
    plans = []
    for threads in (1, 2):
        arguments = ("--evaluations", 300, "--seed", 7, "--threads", threads)
        situate("plan", model, "--cluster", pair, "--out", "plan.json", *arguments)
        plan = json.loads(Path("plan.json").read_text())
        plans.append(list(plan["placement"].items()))
    assert plans[0] == plans[1]


def test_memory_is_an_objective(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--objective", "memory", "--json", *QUICK)
    assert run.json["objective"] == "memory"
    assert run.json["value"] == max(run.json["peak_memory"].values())


def test_identical_devices_need_no_links(situate, model):
    run = situate("plan", model, "--cluster", "identical:3", "--json", *QUICK)
    assert run.json["makespan"] == 3.0


def test_other_rules_are_said_on_stderr(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--rules", "doppler", "--json", *QUICK)
    assert run.json["rules"] == "doppler"
    assert "doppler" in run.err


# Plans that do not fit have a status of their own.
def test_a_plan_that_does_not_fit_says_so_and_exits_3(situate, model, tight_pair):
    run = situate("plan", model, "--cluster", tight_pair, *QUICK)
    assert run.status == 3
    assert "does not fit in memory: gpu" in run.err
    assert "; no plan can: some device holds at least" in run.err


def test_a_plan_that_does_not_fit_is_infeasible_in_json(situate, model, tight_pair):
    run = situate("plan", model, "--cluster", tight_pair, "--json", *QUICK)
    assert run.status == 3
    assert run.json["feasible"] is False
    limit = 1_500
    peaks = run.json["peak_memory"]
    assert run.json["overflow"] == {n: peak - limit for n, peak in peaks.items() if peak > limit}


# A dry run prints a forecast.
def test_a_dry_run_tells_memory_and_time_instead_of_the_search(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--dry-run", *QUICK)
    assert (run.status, run.err) == (0, "")
    for word in ("a forecast", "gpu0", "weights", "received", "It fits.", "3.00 s"):
        assert word in run.out
    assert "lower bound" not in run.out


def test_a_dry_run_writes_nothing_unless_it_is_asked_to(situate, model, pair):
    before = sorted(Path().iterdir())
    situate("plan", model, "--cluster", pair, "--dry-run", *QUICK)
    assert sorted(Path().iterdir()) == before
    situate("plan", model, "--cluster", pair, "--dry-run", "--out", "plan.json", *QUICK)
    assert Plan.read("plan.json")


def test_a_dry_run_in_json_adds_up(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--dry-run", "--json", *QUICK)
    assert run.json["low"] == run.json["high"] == run.json["makespan"] == pytest.approx(3.001)
    for device in run.json["devices"].values():
        parts = ("weights", "optimiser", "held", "gradients", "activations", "received")
        assert sum(device[part] for part in (*parts, "workspace")) == device["peak"]
        assert device["limit"] == 100_000


def test_a_dry_run_that_does_not_fit_says_so_and_exits_3(situate, model, tight_pair):
    run = situate("plan", model, "--cluster", tight_pair, "--dry-run", *QUICK)
    assert run.status == 3
    assert "It does not fit: gpu" in run.out
    assert "does not fit in memory" in run.err


def test_calls_that_wait_for_one_another_have_no_schedule_to_write(situate):
    pins = {"a": "d0", "b": "d1", "c": "d0"}
    ops = tuple(Op(name, seconds={"*": 1.0}, device=device) for name, device in pins.items())
    tensors = (Tensor("t", 0, 1, (1,)), Tensor("u", 1, 1, (2,)))
    graph_json.write(Graph("g", ops, tensors, rules="dnn-partitioning"), "g.json")
    outputs = ("--schedule", "s.json", "--picture", "p.svg", "--out", "plan.json")
    run = situate("plan", "g.json", "--cluster", "identical:2", *outputs, "--json", *QUICK)
    assert run.status == 3
    assert run.err.count("a schedule that never ends has no times") == 2
    assert [run.json[key] for key in ("value", "makespan", "lower_bound")] == [None] * 3
    assert [path.name for path in sorted(Path().iterdir())] == ["g.json", "plan.json"]


def test_there_is_no_bound_where_nothing_fits(situate, model):
    """Ops hold 400 bytes in all, and the one device has 399."""
    device = 'name = "small"\n[[devices]]\nname = "small"\nkind = "gpu"\nmemory = "399 B"\n'
    Path("small.toml").write_text(device)
    command = ("plan", model, "--cluster", "small.toml", "--out", "plan.json", *QUICK)
    run = situate(*command, "--json")
    assert run.status == 3
    assert [run.json[key] for key in ("feasible", "lower_bound", "gap")] == [False, None, None]
    assert Plan.read("plan.json").lower_bound is None
    text = situate(*command).out
    assert "does not" in text or "no:" in text
    assert "bound" not in text
    assert "gap" not in text


def test_a_comparison_has_no_bound_where_nothing_fits(situate, model):
    device = 'name = "small"\n[[devices]]\nname = "small"\nkind = "gpu"\nmemory = "399 B"\n'
    Path("small.toml").write_text(device)
    command = ("compare", model, "--cluster", "small.toml", "--methods", "heft,auto", *QUICK)
    assert "lower bound" not in situate(*command).out
    rows = situate(*command, "--json").json["methods"]
    assert {(row["lower_bound"], row["gap"]) for row in rows} == {(None, None)}


# Slices, and choices that planning makes for them.
def test_a_step_of_slices_is_planned_and_explained(situate, tmp_path):
    pytest.importorskip("torch")
    options = ("tests.branches:build", "--cluster", "k80-2", "--slices", "2", "--replicas", "2")
    once = ("--once", "left.*")
    assert situate("plan", *options, *once, "--out", "plan.json", *QUICK).status == 0
    plan = Plan.read(tmp_path / "plan.json")
    assert len(plan.cut.shares) == 2
    assert {"slice1/left/addmm", "left.weight", "replica1/right.weight"} <= plan.placement.keys()
    explained = situate("explain", "plan.json", "--json")
    assert explained.status == 0
    assert [len(replica["slices"]) for replica in explained.json["replicas"]] == [1, 1]


def test_slices_are_chosen_and_what_was_tried_is_told(situate, tmp_path):
    pytest.importorskip("torch")
    options = ("tests.branches:build", "--cluster", "k80-2", "--slices", "auto")
    options = (*options, "--evaluations", "200")
    text = situate("plan", *options)
    assert "slices that were tried" in text.out
    assert "with --slices auto" not in text.err
    answer = situate("plan", *options, "--out", "plan.json", "--json").json
    values = {str(row["slices"]): row["value"] for row in answer["tried"] if row["value"]}
    assert {"None", "[8, 8]"} <= values.keys()
    assert answer["value"] == min(values.values())
    plan = Plan.read(tmp_path / "plan.json")
    assert (list(plan.cut.shares) if plan.cut else None) == answer["slices"]


@pytest.mark.parametrize("command", ["plan", "explain"])
def test_a_step_that_cannot_be_cut_is_planned_whole_and_says_why(situate, model, pair, command):
    run = situate(command, model, "--cluster", pair, "--slices", "auto", *QUICK)
    assert run.status == 0
    assert f"not cut into slices: {model}: a file holds a step of one size" in run.err


def test_a_method_that_learns_takes_no_slices_that_are_chosen(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--slices", "auto", "--method", "post")
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert "'post' learns from measurements of one step: give a number of slices" in run.err


def test_parameters_that_are_there_once_may_be_left_to_the_predicted_step(situate, tmp_path):
    pytest.importorskip("torch")
    options = ("tests.branches:build", "--cluster", "k80-2", "--slices", "2", "--replicas", "2")
    run = situate("plan", *options, "--once", "auto", "--out", "plan.json", *QUICK)
    assert run.status == 0
    assert "of 4 parameters have a single copy, " in run.err
    cut = Plan.read(tmp_path / "plan.json").cut
    assert f"replicas: {len(cut.once)} of 4" in run.err
    assert "auto" not in cut.once


def test_the_order_of_sums_is_told_or_left_to_the_predicted_step(situate, tmp_path):
    pytest.importorskip("torch")
    options = ("tests.branches:build", "--cluster", "k80-2", "--slices", "4", "--out", "plan.json")
    assert situate("plan", *options, "--sums", "tree", *QUICK).status == 0
    assert Plan.read(tmp_path / "plan.json").cut.sums == "tree"
    assert situate("explain", "plan.json").status == 0
    run = situate("plan", *options, "--sums", "auto", *QUICK)
    assert run.status == 0
    assert f"added up in a {Plan.read(tmp_path / 'plan.json').cut.sums}" in run.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--slices", "9999"), "slices: give 2 to 4,096 of them"),
        (("--slices", "x"), "slices 'x': must be a number of equal slices"),
        (("--slice-dim", "0=1"), "--slice-dim describes slices: give --slices too"),
        (("--slice-loss", "sum"), "--slice-loss describes slices: give --slices too"),
        (("--replicas", "2"), "--replicas describes slices: give --slices too"),
        (("--once", "a"), "--once describes slices: give --slices too"),
        (("--batch-norm", "batch"), "--batch-norm describes slices: give --slices too"),
        (("--slices", "2", "--batch-norm", "all"), "got 'all': give slice or batch"),
        (("--sums", "tree"), "--sums describes slices or cuts: give --slices too"),
        (("--slices", "2", "--sums", "star"), "got 'star': give chain, tree or auto"),
        (("--slices", "auto", "--sums", "auto"), "--sums auto: needs a number of slices"),
        (
            ("--slices", "2", "--replicas", "3"),
            "replicas: give at least 2, and no more than the 2",
        ),
    ],
)
def test_bad_slices_are_one_line(situate, model, options, message):
    run = situate("plan", model, "--cluster", "k80-2", *options)
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert message in run.err


# Modules that run again.
def test_modules_run_again_by_name_or_where_memory_is_short(situate, tmp_path):
    pytest.importorskip("torch")
    options = ("tests.torch_capture.recompute.models:blocks", "--cluster")
    run = situate("plan", *options, "k80-2", "--recompute", "layers.*", "--out", "p.json", *QUICK)
    assert run.status == 0
    assert Plan.read(tmp_path / "p.json").again == ("layers.0", "layers.1", "layers.2")
    assert "modules that run again" in situate("explain", "p.json").out
    roomy = situate("plan", *options, "k80-2", "--recompute", "auto", *QUICK)
    assert (roomy.status, "no module runs again" in roomy.err) == (0, True)


def test_modules_run_again_in_slices_and_replicas_that_are_chosen(situate, tmp_path):
    pytest.importorskip("torch")
    blocks = "tests.torch_capture.recompute.models:blocks"
    options = (blocks, "--cluster", "k80-2", "--out", "p.json")
    choices = ("--slices", "auto", "--recompute", "layers.1")
    assert situate("plan", *options, *choices, "--evaluations", "100").status == 0
    assert Plan.read(tmp_path / "p.json").again == ("layers.1",)
    assert situate("explain", "p.json").status == 0
    copies = ("--slices", "2", "--replicas", "2", "--once", "auto", "--recompute", "all")
    assert situate("plan", *options, *copies, *QUICK).status == 0
    plan = Plan.read(tmp_path / "p.json")
    assert (plan.cut.replicas, "all" in plan.again, len(plan.again)) == ((1, 1), False, 3)
    assert situate("explain", "p.json").status == 0


def test_modules_are_not_chosen_along_with_slices(situate, model):
    choices = ("--slices", "auto", "--recompute", "auto")
    run = situate("plan", model, "--cluster", "k80-2", *choices)
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert "--recompute auto: needs a number of slices: give --slices one" in run.err


def test_bad_modules_are_one_line(situate, model):
    run = situate("plan", model, "--cluster", "k80-2", "--recompute", "auto,head")
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert "recompute: auto is chosen for a cluster" in run.err


# Cuts of ops: by hand, by choice, and where they cannot be.
DECODER = "tests.torch_capture.cuts.networks:decoder"


def test_a_plan_names_its_cuts(situate) -> None:
    cuts = ("--cuts", "heads=2", "--cuts", "features=3:1")
    run = situate("plan", DECODER, "--cluster", "k80-2", *cuts, "--out", "p.json", *QUICK)
    assert run.status == 0
    names = {
        cut["name"]: cut["shares"] for cut in json.loads(Path("p.json").read_text())["cuts"]["cuts"]
    }
    assert names == {"heads": [1, 1], "features": [3, 1]}
    again = situate("explain", "p.json", "--json")
    assert again.status == 0


def test_planning_chooses_cuts(situate) -> None:
    run = situate("plan", f"{DECODER}:inference", "--cluster", "k80-2", "--cuts", "auto", *QUICK)
    assert run.status == 0
    assert "cuts: " in run.err


TWO_NODES = """
name = "two"

[[devices]]
name = "node0-cpu"
count = 2
kind = "cpu"
flops.float32 = 1e10
bandwidth = 1e12
launch = 1e-6

[[devices]]
name = "node1-cpu"
count = 2
kind = "cpu"
flops.float32 = 1e10
bandwidth = 1e12
launch = 1e-6

[[links]]
from = "*"
to = "*"
bandwidth = 1e8
latency = 2e-6
"""


def test_planning_chooses_slices_beside_cuts_and_the_plan_runs(situate) -> None:
    Path("two.toml").write_text(TWO_NODES)
    samples = "tests.torch_capture.cuts.networks:samples"
    options = (samples, "--cluster", "two.toml", "--cuts", "auto", "--out", "p.json", *QUICK)
    run = situate("plan", *options)
    assert run.status == 0
    assert "slices: 4, because a step without would take longer" in run.err
    assert "in any cut of these slices" in run.err
    assert json.loads(Path("p.json").read_text())["slices"]["shares"] == [1, 1, 1, 1]
    verified = situate("verify", samples, "p.json", "--cluster", "two.toml")
    assert verified.status == 0
    assert "to the last bit" in verified.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cuts", "heats=2"), "nothing called 'heats' to cut; did you mean 'heads'"),
        (("--cuts", "heads=3"), "give 2 or 4 parts, or shares that add up to 4, such as 1:1:2"),
        (("--cuts", "heads"), "must be NAME=PARTS"),
        (("--cuts", "auto", "--cuts", "heads=2"), "auto stands alone"),
    ],
)
def test_cuts_that_do_not_fit_are_refused(situate, options, message) -> None:
    run = situate("plan", DECODER, "--cluster", "k80-2", *options, *QUICK)
    assert run.status == 2
    assert message in run.err


def test_a_file_cannot_be_cut(situate) -> None:
    run = situate("convert", DECODER, "g.json")
    for cuts in ("heads=2", "auto"):
        run = situate("plan", "g.json", "--cluster", "k80-2", "--cuts", cuts, *QUICK)
        assert run.status == 2
        assert "holds a step as it was captured, and cuts change the step" in run.err


def test_modules_that_run_again_are_chosen_for_a_step_in_parts(situate) -> None:
    options = ("--cuts", "features=2", "--recompute", "auto")
    run = situate("plan", DECODER, "--cluster", "k80-2", *options, *QUICK, "--out", "p.json")
    assert run.status == 0
    assert json.loads(Path("p.json").read_text())["cuts"]["cuts"][0]["name"] == "features"
