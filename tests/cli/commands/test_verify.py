"""`situate verify`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from situate.cli.commands.verify import TOLERANCE, _threads, _tolerance
from situate.data.cuts import parse_cuts
from situate.data.graph import Graph, Op
from situate.data.slices import Slices
from situate.evaluators.hardware.workers import HardwareWorkers
from situate.runtime import step
from situate.runtime.hardware import RealDevice
from situate.runtime.step import PlacedStep
from tests.branches import Branches
from tests.cli.commands.plans import write_plan

HERE = ("--cluster", "pair.toml")


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path)


@pytest.fixture(scope="module")
def pool():
    """Devices of one thread, each in a process of its own, that run one plan after the other."""
    workers = HardwareWorkers(600.0)
    yield workers
    workers.close()


@pytest.fixture
def running(pool, monkeypatch):
    """Runs plans on worker processes that tests share; starting them takes most of the time."""
    monkeypatch.setattr(step, "DeviceWorkers", pool.start)
    yield
    pool.finish()


@pytest.fixture
def spoilt(monkeypatch):
    """Lets every placed step return a loss that is 0.01 too high."""
    call = PlacedStep.__call__
    monkeypatch.setattr(PlacedStep, "__call__", lambda *args, **how: call(*args, **how) + 0.01)


# Placed steps equal those of PyTorch.
@pytest.mark.parametrize("replicas", [(), (1, 1)])
def test_a_step_of_slices_is_equal_to_the_loop_that_accumulates_them(
    situate, tmp_path, running, replicas
):
    write_plan(tmp_path, method="random", slices=Slices((3, 1), replicas=replicas))
    run = situate("verify", "plan.json", *HERE, "--json")
    assert (run.status, run.json["equal"], run.json["changed"]) == (0, True, 5)


def test_a_step_that_runs_modules_again_is_equal_to_one_that_keeps_all(situate, tmp_path, running):
    model = "tests.torch_capture.recompute.models:blocks"
    write_plan(tmp_path, model, "random", slices=Slices((1, 1)), recompute=["layers.*"])
    run = situate("verify", "plan.json", *HERE, "--json")
    assert (run.status, run.json["equal"]) == (0, True)


def test_batch_norms_over_the_batch_are_equal_to_slices_in_lockstep(situate, tmp_path, running):
    model = "tests.torch_capture.recompute.models:blocks"
    write_plan(tmp_path, model, "random", slices=Slices((3, 1), batch_norm="batch"))
    run = situate("verify", "plan.json", *HERE, "--json", "--steps", "2")
    assert (run.status, run.json["equal"], run.json["tolerance"]) == (0, True, 0.0)


@pytest.mark.parametrize("method", ["single", "random"])
def test_a_placed_step_is_equal(situate, tmp_path, method):
    plan = write_plan(tmp_path, method=method)
    assert len(set(plan.placement.values())) == (2 if method == "random" else 1)
    run = situate("verify", "plan.json", *HERE, "--json")
    assert (run.status, run.err) == (0, "")
    assert run.json["equal"] is True
    assert (run.json["tolerance"], run.json["steps"]) == (0.0, 3)
    assert run.json["loss_difference"] == run.json["parameter_difference"] == 0.0
    assert (run.json["compared"], run.json["changed"]) == (5, 5)
    assert len(set(run.json["losses"])) == 3


def test_the_text_gives_verdict_and_tolerance(situate, plan):
    run = situate("verify", "plan.json", *HERE, "--steps", "1")
    assert "Equal: the placed step computes the same numbers, to the last bit." in run.out
    assert "0: all devices are CPUs with 1 thread each" in run.out


# A difference is named and has a status of its own.
def test_a_difference_exits_4_and_is_named(situate, plan, spoilt):
    run = situate("verify", "plan.json", *HERE)
    assert run.status == 4
    assert "The placed step differs from the unplaced one." in run.out
    assert "in step " in run.out


@pytest.mark.parametrize("tolerance", ["nan", "inf", "-1"])
def test_a_tolerance_is_a_number_that_something_can_pass(situate, plan, tolerance):
    run = situate("verify", "plan.json", *HERE, "--tolerance", tolerance)
    assert run.status == 2
    assert "--tolerance" in run.err


def test_a_difference_within_the_tolerance_passes(situate, plan, spoilt):
    run = situate("verify", "plan.json", *HERE, "--tolerance", "0.02")
    assert run.status == 0
    assert "Equal within the tolerance." in run.out


def test_what_a_model_prints_is_not_the_answer(situate, tmp_path, monkeypatch):
    write_plan(tmp_path)
    forward = Branches.forward
    monkeypatch.setattr(Branches, "forward", lambda *args: print("shape") or forward(*args))
    run = situate("verify", "plan.json", *HERE, "--steps", "1", "--json")
    assert run.json["equal"] is True
    assert "shape" in run.err


def test_gradients_are_clipped_as_the_plan_says(situate, tmp_path, running):
    write_plan(tmp_path, method="random", optimizer="adam:clip=0.01")
    run = situate("verify", "plan.json", *HERE, "--json")
    assert (run.status, run.json["equal"]) == (0, True)
    other = situate("verify", "plan.json", *HERE, "--optimizer", "adam")
    assert other.status == 2
    assert "the plan is for optimizer adam:clip=0.01, the one given is adam: " in other.err


def test_inference_is_compared_too(situate, tmp_path):
    write_plan(tmp_path, "tests.branches:build:inference")
    run = situate("verify", "plan.json", *HERE, "--json")
    assert (run.status, run.json["equal"], run.json["losses"]) == (0, True, [])


@pytest.mark.parametrize("mode", ["", ":inference"])
def test_a_model_that_names_devices_runs_where_the_plan_says(situate, tmp_path, running, mode):
    write_plan(tmp_path, f"tests.branches:named{mode}", method="random")
    run = situate("verify", "plan.json", *HERE, "--json")
    assert (run.status, run.json["equal"], run.json["tolerance"]) == (0, True, 0.0)
    assert run.err.count("warning: the model or step names cuda, cuda:1: taken as") == 1
    assert run.err.count("warning") == 1


# Kernels that round differently have a tolerance, and only they.
@pytest.mark.usefixtures("interpreters")
def test_devices_of_unequal_threads_have_a_tolerance(situate, tmp_path):
    write_plan(tmp_path, method="random", threads=(1, 2))
    content = situate("verify", "plan.json", *HERE, "--steps", "1", "--json").json
    assert content["tolerance"] == TOLERANCE
    assert content["equal"] is True


def test_the_unplaced_step_has_the_threads_of_the_cpus():
    gpu = RealDevice("gpu", "cuda:0", 1, mirrored=True)
    assert _threads([gpu]) is None
    assert _threads([gpu, RealDevice("a", "cpu", None)]) is None
    assert _threads([gpu, RealDevice("a", "cpu", 2), RealDevice("b", "cpu", 4)]) == 4


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("bfloat16", 1e-2)])
def test_numbers_of_16_bits_have_a_tolerance_of_their_own(dtype, tolerance):
    graph = Graph(name="short", ops=(Op("a"), Op("b", dtype=dtype)))
    cpu = SimpleNamespace(torch="cpu", threads=1)
    assert _tolerance(None, [cpu], ["torch.nn.LSTM"], graph)[0] == tolerance
    assert _tolerance(None, [cpu], [], graph)[0] == 0.0
    assert _tolerance(0.5, [cpu], [], graph) == (0.5, "as given")


def test_what_is_captured_op_by_op_has_a_tolerance(situate, tmp_path, running):
    write_plan(tmp_path, "tests.branches:recurrent", method="random")
    run = situate("verify", "plan.json", *HERE)
    assert (run.status, run.err) == (0, "")
    assert "0.0001: captured as other ops, which round otherwise: torch.nn.LSTM" in run.out


@pytest.mark.parametrize("mode", ["", ":inference"])
def test_interpolation_is_equal_to_the_last_bit(situate, tmp_path, running, mode):
    write_plan(tmp_path, f"tests.branches:upsampling{mode}", method="random")
    content = situate("verify", "plan.json", *HERE, "--json").json
    assert (content["tolerance"], content["equal"]) == (0.0, True)


def test_an_lstm_that_infers_is_equal_to_the_last_bit(situate, tmp_path, running):
    write_plan(tmp_path, "tests.branches:recurrent:inference", method="random")
    content = situate("verify", "plan.json", *HERE, "--json").json
    assert (content["tolerance"], content["equal"]) == (0.0, True)


def test_an_endless_loss_proves_nothing(situate, tmp_path):
    write_plan(tmp_path, "tests.branches:endless")
    run = situate("verify", "plan.json", *HERE)
    assert (run.status, run.out) == (2, "")
    assert "the loss of step 1 is inf" in run.err


# Steps in parts equal a loop of the parts, and whole ops but for rounding.
@pytest.mark.parametrize("slices", [None, Slices((1, 1))])
def test_a_step_in_parts_is_compared_twice(situate, tmp_path, running, slices) -> None:
    model, cuts = "tests.torch_capture.cuts.networks:perceptron", parse_cuts(["features=2"])
    write_plan(tmp_path, model, method="random", slices=slices, cuts=cuts)
    run = situate("verify", "plan.json", *HERE, "--json")
    assert (run.status, run.json["equal"], run.json["tolerance"]) == (0, True, 0.0)
    assert run.json["parts_equal"]
    assert run.json["parts_gradient_difference"] < 1e-12
    text = situate("verify", "plan.json", *HERE).out
    assert "Parts against whole ops: equal but for rounding." in text


def test_parts_that_compute_something_else_are_a_fault(situate, tmp_path, running, monkeypatch):
    from situate.runtime.parts.loop import LoopOfParts

    call = LoopOfParts.__call__
    monkeypatch.setattr(LoopOfParts, "__call__", lambda loop: [call(loop)[0] + 0.01])
    model, cuts = "tests.torch_capture.cuts.networks:perceptron", parse_cuts(["features=2"])
    write_plan(tmp_path, model, cuts=cuts)
    run = situate("verify", "plan.json", *HERE)
    assert run.status == 4
    assert "Parts against whole ops: the results differ by 0.01" in run.out
