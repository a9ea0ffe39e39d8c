"""The contents of memory at the peak, by their role."""

from __future__ import annotations

import numpy as np
import pytest

from situate import zoo
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import ScheduleError
from situate.report.forecast import Content, forecast
from situate.simulation.decoding import decode
from tests.report.handmade import chain, schedule


def step(source: str = "pytorch", memory: int | None = None, **problem: str) -> Problem:
    """A parameter of 100 bytes with 200 of state, a layer with a buffer of 7, its gradient of 90,
    an update; gradient and update take workspace."""
    one = {"*": 1.0}
    ops = (
        Op("w", "parameter", seconds={"*": 0.0}, persistent=300, phase="forward"),
        Op("layer", seconds=one, persistent=7, phase="forward"),
        Op("grad", seconds=one, workspace=3, phase="backward"),
        Op("w/adam", "update.adam", seconds=one, workspace=5, phase="update"),
    )
    tensors = (
        Tensor("w:0", 0, 100, (1,), resident=True),
        Tensor("out", 1, 50, (2,)),
        Tensor("grad:0", 2, 90, (3,)),
    )
    devices = tuple(Device(name, memory=memory) for name in ("a", "b"))
    cluster = Cluster("c", devices, (Link("*", "*", 1e3),))
    return Problem(Graph("g", ops, tensors, source=source), cluster, **problem)  # type: ignore[arg-type]


def test_the_parts_of_a_training_step():
    problem = step()
    (a, b) = forecast(problem, schedule(problem, [0, 0, 0, 0])).devices
    assert a.content == Content(
        weights=107, optimiser=200, gradients=90, activations=50, workspace=3
    )
    assert (a.peak, a.ops, a.peak_time) == (450, 4, 1.0)
    assert b.content == Content()


def test_copies_of_what_others_made_are_received():
    problem = step()
    (a, b) = forecast(problem, schedule(problem, [0, 1, 0, 0])).devices
    assert b.content == Content(weights=7, activations=50, received=100)
    assert a.content == Content(weights=100, optimiser=200, gradients=90, received=50, workspace=3)


def test_what_a_graph_does_not_tell_is_held():
    problem = step(source="dnn-partitioning")
    content = forecast(problem, schedule(problem, [0, 0, 0, 0])).devices[0].content
    assert (content.weights, content.optimiser, content.held) == (100, 200, 7)


@pytest.mark.parametrize("rules", ["situate", "regal", "dnn-partitioning"])
@pytest.mark.parametrize("seed", range(3))
def test_the_parts_add_up_to_the_schedules_peak(rules: str, seed: int):
    """The whole training step adds up, whatever the rule of memory."""
    from situate.data.rules import find_rules

    graph = zoo.load("cifar_cnn")
    problem = Problem(graph, Cluster.preset("k80-2"), rules=find_rules(rules))
    of_unit = np.random.default_rng(seed).integers(problem.d, size=problem.units)
    placement = of_unit[problem.unit].astype(np.int32)
    order = np.array(graph.order, np.int32)
    decoder = "calls" if problem.transfers == "atomic" else "eager"
    plan = decode(problem, placement, order, decoder)  # type: ignore[arg-type]
    if not np.isfinite(plan.makespan):
        with pytest.raises(ScheduleError):
            forecast(problem, plan)
        return
    prediction = forecast(problem, plan)
    assert [device.content.total for device in prediction.devices] == plan.peak.tolist()
    assert [device.peak for device in prediction.devices] == plan.peak.tolist()


def test_whether_it_fits():
    tight, roomy = step(memory=449), step(memory=450)
    assert not forecast(tight, schedule(tight, [0] * 4)).fits
    assert forecast(roomy, schedule(roomy, [0] * 4)).fits
    assert forecast(step(), schedule(step(), [0] * 4)).devices[0].limit is None


def test_the_period_is_told_where_it_is_the_objective():
    problem = step(objective="throughput")
    assert forecast(problem, schedule(problem, [0] * 4)).period == 3.0
    assert forecast(chain(), schedule(chain(), [0] * 3)).period is None


def test_a_gradient_that_others_read_too_is_one_and_a_parameter_may_be_of_several_tensors():
    """The norm of all gradients is told from the gradient, and of the parameter's tensors one is a
    copy that it does not hold."""
    one = {"*": 1.0}
    ops = (
        Op("w", "parameter", seconds={"*": 0.0}, persistent=300, phase="forward"),
        Op("layer", seconds=one, phase="forward"),
        Op("grad", seconds=one, phase="backward"),
        Op("norm", seconds=one, phase="backward"),
        Op("w/adam", "update.adam", seconds=one, phase="update"),
    )
    tensors = (
        Tensor("w:0", 0, 100, (1,), resident=True),
        Tensor("w:1", 0, 60, (4,), resident=True),
        Tensor("w:2", 0, 9, (1,)),
        Tensor("out", 1, 50, (2,)),
        Tensor("grad:0", 2, 90, (3, 4)),
        Tensor("norm:0", 3, 4, (3 + 1,)),
    )
    cluster = Cluster("c", (Device("a"),), (Link("*", "*", 1e3),))
    problem = Problem(Graph("g", ops, tensors, source="pytorch"), cluster)
    (a,) = forecast(problem, schedule(problem, [0] * 5)).devices
    assert a.content == Content(weights=160, optimiser=140, gradients=90, activations=50)


def test_a_peak_by_steps_is_told_in_seconds():
    """The transfer takes four seconds, and one step like the ops."""
    problem = chain(2, bandwidth=25, rules="regal")
    assert forecast(problem, schedule(problem, [0, 1])).devices[1].peak_time == 5.0
