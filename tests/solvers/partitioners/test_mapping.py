"""The input of the graph partitioners is a problem's, and their plans keep its constraints."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.late import Lateness
from situate.solvers.partitioners.mapping import LEAST_SPEED, Mapping
from tests.oracle.problems import random_problem
from tests.solvers.families import (
    RULES,
    apart,
    chain,
    devices,
    families,
    graph,
    layered,
    pinned_and_grouped,
    problem,
)
from tests.solvers.programs import PARTITIONERS


def _check(drawn: Problem, method: str) -> None:
    result = solve(drawn, method)
    assert drawn.allowed[drawn.unit, result.placement].all()
    for unit in range(drawn.units):
        assert len(set(result.placement[drawn.unit == unit])) == 1
    order = np.array(drawn.graph.order, np.int32)
    assert result.order.tolist() in (order.tolist(), Lateness(drawn).order(order).tolist())
    if np.isfinite(result.schedule.makespan):
        result.schedule.verify(drawn, allow_overflow=not result.feasible)


def _everywhere(small: Graph, seconds: float = 1.0) -> Graph:
    """The same graph; every op takes this long on any device."""
    return Graph(
        "same", tuple(Op(op.name, seconds={"*": seconds}) for op in small.ops), small.tensors
    )


@pytest.mark.parametrize("method", PARTITIONERS)
@pytest.mark.parametrize("family", families())
def test_plans_hold_on_every_family(family: str, method: str) -> None:
    for rules in RULES:
        _check(problem(family, rules=rules), method)


@pytest.mark.parametrize("method", PARTITIONERS)
def test_plans_hold_on_random_problems(method: str) -> None:
    """Among them 240, where every unit takes no time on some device and each device takes some."""
    for seed in (*range(40), 240):
        _check(random_problem(seed), method)


@pytest.mark.parametrize("method", PARTITIONERS)
def test_times_and_bytes_of_any_size_are_scaled(method: str) -> None:
    for seconds, size in ((1e290, 2**53), (1e-290, 1), (0.0, 0)):
        huge = _everywhere(layered(6, 6, 1, size=size), seconds)
        _check(Problem(huge, devices(1, 1, bandwidth=1e9)), method)


@pytest.mark.parametrize("method", PARTITIONERS)
def test_devices_without_links_and_fewer_ops_than_devices(method: str) -> None:
    _check(Problem(_everywhere(layered(3, 3, 1)), Cluster.identical(4)), method)
    _check(Problem(_everywhere(chain(2)), Cluster.identical(5)), method)


@pytest.mark.parametrize("method", PARTITIONERS)
def test_pins_and_groups_hold(method: str) -> None:
    result = solve(Problem(pinned_and_grouped(), devices(1, 2, 1)), method)
    assert result.placement.tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize("method", PARTITIONERS)
def test_a_plan_that_does_not_fit_is_reported(method: str) -> None:
    """Loads are balanced, bytes held are not: the one op that takes long holds nothing."""
    ops = [Op("long", seconds={"*": 9.0})]
    ops += [Op(f"op{j}", seconds={"*": 1.0}, persistent=10) for j in range(9)]
    result = solve(Problem(Graph("g", tuple(ops)), devices(1, 1, memory=60)), method)
    assert not result.feasible
    assert result.schedule.peak.max() == 90


@pytest.mark.parametrize("method", PARTITIONERS)
@pytest.mark.parametrize("family", ["layered", "wide", "17 devices"])
def test_the_seed_and_the_threads_change_nothing(family: str, method: str) -> None:
    first = solve(problem(family), method, seed=1, threads=1)
    second = solve(problem(family), method, seed=2, threads=2)
    assert np.array_equal(first.placement, second.placement)


def test_loads_are_those_of_the_devices_in_question() -> None:
    """The CPU is faster at the small op; it counts where it is among the devices."""
    ops = (Op("large", seconds={"d0": 1.0, "d1": 9.0}), Op("small", seconds={"d0": 3.0, "d1": 1.0}))
    pair = Problem(Graph("g", ops), devices(1, 2))
    assert Mapping.onto(pair, [0]).load.tolist() == [1, 3]
    assert Mapping.onto(pair, [0, 1]).load.tolist() == [1, 1]
    assert Mapping.onto(pair, [0, 1]).speed.tolist() == [2 / 4, 2 / 10]


def test_a_device_counts_by_what_it_can_run() -> None:
    ops = (Op("a", seconds={"d0": 2.0, "d1": 4.0}), Op("b", seconds={"d0": 9.0}))
    mapping = Mapping.onto(Problem(Graph("g", ops), devices(1, 1, 1)), [0, 1, 2])
    assert mapping.devices.tolist() == [0, 1]
    assert mapping.speed.tolist() == [1, 0.5]


def test_speeds_are_never_zero() -> None:
    ops = (Op("a", seconds={"d0": 0.0, "d1": 4.0}), Op("b", seconds={"d0": 1.0, "d1": 4e9}))
    crawl = Mapping.onto(Problem(Graph("g", ops), devices(1, 1)), [0, 1])
    assert crawl.speed.tolist() == [1, LEAST_SPEED]
    assert Mapping.onto(Problem(apart(3, seconds=0.0), devices(1, 1)), [0, 1]).speed.min() == 1


def test_where_no_device_in_question_is_of_use_all_are() -> None:
    ops = (Op("a", seconds={"d1": 1.0}), Op("b", seconds={"d2": 1.0}))
    mapping = Mapping.onto(Problem(Graph("g", ops), devices(1, 1, 1)), [0])
    assert mapping.devices.tolist() == [1, 2]


def test_what_cannot_stay_goes_to_the_most_of_its_bytes() -> None:
    """Op 3 reads 5 bytes from d1 and twice 3 from d2, and cannot run on d0."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(3))
    ops = (*ops, Op("op3", seconds={"d1": 1.0, "d2": 2.0}))
    tensors = tuple(Tensor(f"t{j}", j, size, (3,)) for j, size in enumerate((5, 3, 3)))
    mapping = Mapping.onto(Problem(Graph("g", ops, tensors), devices(1, 1, 1)), [0, 1, 2])
    assert mapping.placement(np.array([1, 2, 2, 0])).tolist() == [1, 2, 2, 2]
    assert mapping.placement(np.array([1, 2, 0, 0])).tolist() == [1, 2, 0, 1]


def test_among_strangers_it_goes_where_it_is_fastest() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"d1": 2.0, "d2": 1.0}))
    mapping = Mapping.onto(Problem(Graph("g", ops), devices(1, 1, 1)), [0, 1, 2])
    assert mapping.placement(np.array([0, 0])).tolist() == [0, 2]


def test_processors_are_the_devices_in_question() -> None:
    cluster = Cluster(
        "c", (Device("c0", "cpu"), Device("a0", "x1"), Device("a1", "x1")), (Link("*", "*", 1.0),)
    )
    mapping = Mapping.onto(Problem(graph(2, []), cluster), [1, 2])
    assert mapping.placement(np.array([1, 0])).tolist() == [2, 1]
