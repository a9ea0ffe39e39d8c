"""Problems and plans from the arguments of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.cli.inputs import read_model
from situate.data import graph_json
from situate.data.capture_options import CaptureOptions
from situate.data.costs import Costs, MeasuredDevice, Timing
from situate.data.graph import Graph, MachineDevice, Op
from tests.cli.conftest import diamond


def test_what_a_users_function_prints_stays_out_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def chatty(*_: object) -> Graph:
        print("downloading")
        return diamond()

    monkeypatch.setattr("situate.cli.inputs.load_graph", chatty)
    read_model("mine:step", CaptureOptions())
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "downloading\n")


@pytest.fixture
def signed(tmp_path: Path) -> str:
    """Four independent ops that work, and one that does not."""
    ops = tuple(Op(n, "aten.mm", flops=8, signature=f"mm {n}") for n in "abcd")
    graph_json.write(Graph("signed", (*ops, Op("e"))), tmp_path / "signed.json")
    return "signed.json"


@pytest.fixture
def costs(tmp_path: Path) -> str:
    """An hour each for a, b, c and d on a GPU."""
    hour = {f"mm {n}": Timing(3600.0, 3600.0, 3600.0, 1) for n in "abcd"}
    Costs("here", "today", {}, [MeasuredDevice("gpu0", "gpu", seconds=hour)]).write(
        tmp_path / "costs.json"
    )
    return "costs.json"


# Measured costs belong to the problem and its plans.
def test_costs_are_what_ops_take(situate, signed, costs, pair):
    run = situate(
        "plan", signed, "--cluster", pair, "--costs", costs, "--evaluations", 200, "--json"
    )
    assert run.json["value"] == 7200.0
    assert "costs:" not in run.err


def test_ops_that_were_not_measured_are_counted(situate, signed, costs):
    content = Path(costs).read_text().replace("mm d", "mm z")
    Path(costs).write_text(content)
    run = situate("plan", signed, "--cluster", "k80-2", "--costs", costs, "--evaluations", 1)
    assert "costs: 1 of 4 ops were measured" not in run.err
    assert "costs: 1 of 4 ops were not measured on gpu0, gpu1" in run.err


def test_a_device_of_which_nothing_was_measured_is_named(situate, signed, costs):
    run = situate("plan", signed, "--cluster", "k80-2", "--costs", costs, "--evaluations", 1)
    assert "costs: no op was measured on cpu" in run.err


def test_a_plan_made_with_costs_needs_them_again(situate, signed, costs, pair):
    cluster = "--cluster", pair
    situate("plan", signed, *cluster, "--costs", costs, "--evaluations", 9, "--out", "p.json")
    for command in (["explain"], ["export", "--to", "dot", "--out", "p.dot"]):
        name, *options = command
        without = situate(name, signed, "p.json", *cluster, *options)
        assert without.status == 2
        assert (
            "made with measured costs, and none are given: give those (--costs, costs=)"
            in without.err
        )
        assert situate(name, signed, "p.json", *cluster, "--costs", costs, *options).status == 0


def test_costs_are_read_before_the_model_and_never_overwritten(situate, signed, costs, pair):
    run = situate("plan", "no_such", "--cluster", pair, "--costs", "none.json")
    assert (run.status, run.err) == (2, "error: none.json: no such file\n")
    assert situate("plan", signed, "--cluster", pair, "--costs", costs, "--out", costs).status == 2
    assert Costs.read(costs).machine == "here"


# A plan is read with its own model and cluster.
def test_a_plan_of_a_file_that_updates_is_read_without_an_optimizer(situate, pair):
    ops = (Op("w", seconds={"*": 1.0}), Op("w/adam", seconds={"*": 1.0}, phase="update"))
    graph_json.write(Graph("trained", ops), "trained.json")
    cluster = "--cluster", pair
    situate("plan", "trained.json", *cluster, "--evaluations", 1, "--out", "p.json")
    assert situate("explain", "trained.json", "p.json", *cluster).status == 0
    typed = situate("explain", "trained.json", "p.json", *cluster, "--optimizer", "adam")
    assert "a file holds its own update: leave --optimizer out" in typed.err


def test_a_plan_of_a_cluster_file_asks_for_that_file(situate, model, pair):
    situate("plan", model, "--cluster", pair, "--evaluations", 1, "--out", "p.json")
    for command in (["explain"], ["export", "--to", "dot", "--out", "p.dot"]):
        name, *options = command
        run = situate(name, model, "p.json", *options)
        message = (
            "error: the plan was made for cluster 'pair', which is a file: give it with --cluster "
            "FILE\n"
        )
        assert (run.status, run.err) == (2, message)


# A cluster comes from an option or from the model.
def test_a_missing_cluster_is_told_before_a_model_is_captured(situate, monkeypatch):
    monkeypatch.setattr("situate.cli.inputs.load_graph", lambda *_: pytest.fail("captured"))
    run = situate("plan", "mine:step")
    assert run.status == 2
    assert "error: mine:step brings no machine of its own: give --cluster a preset" in run.err
    assert "identical" not in run.err, "identical devices have no rates to derive its seconds from"


def test_times_without_a_unit_are_pointed_to_identical_devices_alone(situate, tmp_path):
    (tmp_path / "two.stg").write_text("1\n0 0 0\n1 5 1 0\n2 0 1 1\n")
    run = situate("plan", str(tmp_path / "two.stg"))
    assert run.status == 2
    assert run.err.endswith("brings no machine of its own: give --cluster identical:N\n")


def test_the_machine_of_a_models_file_is_found_again(situate):
    machine = (MachineDevice("gpu0", "gpu"), MachineDevice("gpu1", "gpu"))
    graph_json.write(diamond(machine=machine), "own.json")
    situate("plan", "own.json", "--evaluations", 1, "--out", "p.json")
    assert situate("explain", "own.json", "p.json").status == 0


def test_sizes_of_axes_without_a_name_are_typed_by_input_and_axis(situate, tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    relu = helper.make_node("Relu", ["a.b/x:0"], ["y"])
    ends = [helper.make_tensor_value_info(n, number, [None, None]) for n in ("a.b/x:0", "y")]
    graph = helper.make_graph([relu], "g", ends[:1], ends[1:])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    run = situate("info", "m.onnx", "--dim", "a.b/x:0.0=8", "--dim", "a.b/x:0.1=16", "--json")
    assert (run.json["flops"], run.err) == (128, "")


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--slices", "auto"), "give a number, such as 4"),
        (("--slices", "2", "--sums", "auto"), "give chain or tree"),
        (("--slices", "2", "--replicas", "2", "--once", "auto"), "name parameters"),
    ],
)
@pytest.mark.parametrize("command", ["convert", "info", "profile"])
def test_nothing_is_chosen_without_a_cluster(situate, model, command, options, remedy):
    rest = {"convert": ["out.json"], "info": [], "profile": ["--out", "out.json"]}[command]
    run = situate(command, model, *rest, *options)
    beginning = f"error: {options[-2]} auto: 'plan', 'compare' and 'explain' choose for a cluster"
    assert (run.status, run.err) == (2, f"{beginning}: {remedy}\n")
