"""`situate run`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from situate.runtime.measure import StepTimes
from situate.runtime.step import PlacedStep
from tests.cli.commands.plans import write_plan

HERE = ("--cluster", "pair.toml")
KEYS = {
    *("name", "busy", "waited", "predicted_busy", "predicted_waited"),
    *("peak", "predicted_peak", "limit"),
}


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path)


# A run reports measured times beside predicted ones.
def test_ten_of_eleven_steps_are_averaged(situate, plan):
    run = situate("run", "plan.json", *HERE, "--json")
    assert run.status == 0
    assert all(line.startswith("warning: some steps took") for line in run.err.splitlines())
    content = run.json
    assert (content["graph"], content["cluster"]) == ("tests.branches:build", "pair")
    assert len(content["seconds"]) == 10
    assert min(content["seconds"]) <= content["mean"] <= max(content["seconds"])
    assert content["predicted"] == plan.makespan
    assert content["error"] == pytest.approx(plan.makespan / content["mean"] - 1)
    assert content["devices"].keys() == {"cpu:0", "cpu:1"}
    assert all(device.keys() == KEYS for device in content["devices"].values())
    used = [device for device in content["devices"].values() if device["busy"]]
    assert [device["peak"] is not None for device in used] == [True]
    assert used[0]["peak"] > used[0]["predicted_peak"] / 2
    busy = {name: device["busy"] for name, device in content["devices"].items()}
    assert sorted(busy, key=busy.__getitem__)[-1] in plan.placement.values()


def test_a_full_disk_does_not_take_the_answer(situate, plan):
    pytest.importorskip("perfetto")
    run = situate("run", "plan.json", *HERE, "--steps", "2", "--json", "--trace", "/dev/full")
    assert (run.status, len(run.json["seconds"])) == (2, 1)


def test_the_text_sets_measured_beside_predicted(situate, plan):
    run = situate("run", "plan.json", *HERE, "--steps", "2")
    for part in ("tests.branches:build on pair, run", "the mean of 1 step", "predicted", "loss"):
        assert part in run.out


def test_the_same_seed_gives_the_same_losses(situate, plan):
    def loss(seed):
        return situate("run", "plan.json", *HERE, "--steps", 2, "--seed", seed, "--json").json[
            "loss"
        ]

    assert loss(1) == loss(1)
    assert loss(1) != loss(2)


def test_inference_has_no_loss(situate, tmp_path):
    write_plan(tmp_path, "tests.branches:build:inference")
    run = situate("run", "plan.json", *HERE, "--steps", "2", "--json")
    assert (run.status, run.json["loss"]) == (0, None)


def test_two_devices_work_and_a_trace_has_both_timelines(situate, tmp_path):
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    plan = write_plan(tmp_path, method="random")
    assert len(set(plan.placement.values())) == 2
    run = situate("run", "plan.json", *HERE, "--steps", 2, "--trace", "both.pftrace", "--json")
    assert (run.status, run.err) == (0, "wrote both.pftrace\n")
    assert all(device["busy"] > 0 for device in run.json["devices"].values())
    trace = protos.Trace.FromString(Path("both.pftrace").read_bytes())
    events = [p.track_event.name for p in trace.packet if p.track_event.name]
    assert events.count("tanh") == 2


# Plans that cannot run here are refused in one line.
def test_a_model_of_another_name_is_named_before_its_plan(situate, plan):
    msgspec.structs.replace(plan, graph="model").write("plan.json")
    alone = situate("run", "plan.json", *HERE)
    assert (alone.status, alone.out) == (2, "")
    assert "give its model before it" in alone.err
    run = situate("run", "tests.branches:build", "plan.json", *HERE, "--steps", 2)
    assert run.status == 0


def test_a_plan_for_another_model_is_refused(situate, plan):
    run = situate("run", "cifar_cnn", "plan.json", *HERE)
    assert (run.status, run.out) == (2, "")
    assert "the plan was made for graph 'tests.branches:build', not for" in run.err


def test_a_graph_in_a_file_cannot_run(situate, plan, model):
    run = situate("run", model, "plan.json", *HERE)
    assert (run.status, run.out) == (2, "")
    assert "is no PyTorch model that could run" in run.err


def test_a_cluster_that_is_a_file_must_be_given(situate, plan):
    run = situate("run", "plan.json")
    assert (run.status, run.out) == (2, "")
    assert "made for cluster 'pair', which is a file: give it with --cluster" in run.err


def test_devices_that_are_not_here_are_named(situate, tmp_path):
    write_plan(tmp_path)
    arguments = ("--cluster", "k80-4", "--method", "random", "--out", "far.json")
    situate("plan", "tests.branches:build", "--evaluations", "1", *arguments)
    run = situate("run", "far.json")
    assert (run.status, run.out) == (2, "")
    assert "CUDA devices" in run.err


def test_a_loss_that_is_no_number_is_said(situate, tmp_path):
    write_plan(tmp_path, "tests.branches:endless")
    run = situate("run", "plan.json", *HERE)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: the loss of step 1 is inf: ")
    assert run.err.count("\n") == 1


def test_what_is_no_plan_is_refused(situate):
    Path("plan.json").write_text("{}")
    run = situate("run", "plan.json")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: plan.json: not a plan")


def test_ctrl_c_is_one_line_and_closes_the_step(situate, plan, monkeypatch):
    closed = []

    def interrupted(step, *rest):
        os.kill(os.getpid(), signal.SIGINT)
        return StepTimes(0.0, (), (), ())

    monkeypatch.setattr("situate.runtime.measure.measure", interrupted)
    monkeypatch.setattr(PlacedStep, "__exit__", lambda *_: closed.append(True))
    run = situate("run", "plan.json", *HERE)
    assert (run.status, run.out, run.err) == (130, "", "interrupted\n")
    assert closed == [True]
