"""The step on one device alone."""

from __future__ import annotations

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.report.one_device import objective_value, single_device
from tests.report.handmade import chain, schedule


@pytest.mark.parametrize(("objective", "value"), [("time", 4), ("throughput", 2), ("memory", 221)])
def test_a_schedule_has_a_value_for_every_objective(objective: str, value: float) -> None:
    problem = chain(3, objective=objective)
    assert objective_value(problem, schedule(problem, [0, 1, 1])) == value


@pytest.mark.parametrize(("objective", "value"), [("time", 3), ("throughput", 3), ("memory", 231)])
def test_a_device_has_a_value_for_every_objective(objective: str, value: float) -> None:
    problem = chain(3, objective=objective)
    single = single_device(problem, schedule(problem, [0, 1, 0]))
    assert single is not None
    assert (single.value, single.makespan, single.peak) == (value, 3, 231)


@pytest.mark.parametrize(("memory", "fits"), [(231, True), (230, False), (None, True)])
def test_it_says_whether_one_device_would_do(memory: int | None, fits: bool) -> None:
    problem = chain(3, memory=memory)
    single = single_device(problem, schedule(problem, [0, 1, 0]))
    assert single is not None
    assert (single.makespan, single.peak, single.fits) == (3, 231, fits)


def test_of_single_devices_the_fastest_that_holds_the_step_is_named() -> None:
    ops = (Op("a", seconds={"small": 1.0, "large": 2.0}, persistent=10),
           Op("b", seconds={"small": 1.0, "large": 2.0}, persistent=10))  # fmt: skip
    devices = (Device("small", memory=15), Device("large", memory=20))
    problem = Problem(Graph("g", ops), Cluster("c", devices, (Link("*", "*", 1.0),)))
    single = single_device(problem, schedule(problem, [0, 1]))
    assert single is not None
    assert (single.name, single.makespan, single.fits) == ("large", 4, True)


def test_ops_pinned_apart_have_no_single_device() -> None:
    ops = (Op("a", seconds={"*": 1.0}, device="gpu0"), Op("b", seconds={"*": 1.0}, device="gpu1"))
    problem = Problem(Graph("g", ops), chain(1).cluster)
    assert single_device(problem, schedule(problem, [0, 1])) is None
