"""The last phase: cleanup, and one device instead of several."""

from __future__ import annotations

import numpy as np
import pytest

import situate
from situate.data.cluster import Device, Link
from situate.data.costs import Costs, MeasuredDevice
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.auto.finish import clean_up, stray
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.families import devices


def _problem(update_seconds: float = 0.0) -> Problem:
    """A parameter with its update, read by one op; and a long op beside them."""
    ops = (
        Op("weight", seconds={"*": 0.0}, persistent=4, group="weight"),
        Op("read", seconds={"*": 1.0}),
        Op("update", seconds={"*": update_seconds}, group="weight"),
        Op("long", seconds={"*": 3.0}),
    )
    tensors = (Tensor("w", 0, 4, (1,), resident=True), Tensor("g", 1, 0, (2,)))
    return Problem(Graph("g", ops, tensors), devices(1, 1, bandwidth=1e9))


def _tidied(problem: Problem, placement: list[int]) -> list[int]:
    search = Search(problem, budget=Budget(evaluation_limit=100), threads=1)
    search.offer(np.array(placement, np.int32), np.arange(4, dtype=np.int32))
    clean_up(search)
    assert search.best is not None
    return search.best.placement.tolist()


# Parameters and inputs go to their readers where that costs nothing.
def test_a_parameter_read_elsewhere_only_is_stray() -> None:
    problem = _problem()
    unit = int(problem.unit[0])
    assert stray(problem, np.array([1, 0, 1, 1], np.int32)).tolist() == [[unit, 0]]
    assert stray(problem, np.array([0, 0, 0, 1], np.int32)).tolist() == []


def test_a_parameter_goes_to_its_reader_with_its_update() -> None:
    assert _tidied(_problem(), [1, 0, 1, 1]) == [0, 0, 0, 1]


def test_a_parameter_stays_where_its_move_would_cost_time() -> None:
    problem = _problem(update_seconds=2.5)
    assert _tidied(problem, [1, 0, 1, 0]) == [1, 0, 1, 0]


def test_moves_that_are_all_as_good_are_made_at_once() -> None:
    """100 parameters beside the wrong op are one plan more to decode."""
    weights = [Op(f"weight{i}", seconds={"*": 0.0}, persistent=4) for i in range(100)]
    ops = (*weights, Op("read", seconds={"*": 1.0}), Op("long", seconds={"*": 3.0}))
    tensors = tuple(Tensor(f"w{i}", i, 4, (100,), resident=True) for i in range(100))
    problem = Problem(Graph("g", ops, tensors), devices(1, 1, bandwidth=1e9))
    search = Search(problem, budget=Budget(evaluation_limit=1000), threads=1)
    placement = np.array([1] * 100 + [0, 1], np.int32)
    before = search.offer(placement, np.arange(102, dtype=np.int32), ["eager"])
    evaluations = search.budget.evaluations
    clean_up(search)
    assert search.best is not before
    assert search.best is not None
    assert search.best.placement.tolist() == [0] * 101 + [1]
    assert search.budget.evaluations == evaluations + 1


def test_it_tries_halves_until_what_must_stay_is_found() -> None:
    """Eight parameters beside the wrong op, the sixth with an update that delays others."""
    search = _beside(_many())
    clean_up(search)
    assert search.best is not None
    assert search.best.placement.tolist()[:8] == [0, 0, 0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("left", range(4))
def test_the_evaluations_that_are_left_end_it(left: int) -> None:
    search = _beside(_many(), evaluations=1 + left)
    clean_up(search)
    assert search.budget.evaluations == 1 + left


def test_the_time_limit_ends_it() -> None:
    search = _beside(_many(), time_limit=0.0)
    clean_up(search)
    assert search.budget.evaluations == 1


def _many() -> Problem:
    """Eight parameters that one op reads; behind it a long op and the update of the sixth."""
    free, slow = {"*": 0.0}, {"*": 2.5}
    groups = [f"g{i}" for i in range(8)]
    ops = (
        *(Op(f"weight{i}", seconds=free, persistent=4, group=g) for i, g in enumerate(groups)),
        Op("read", seconds={"*": 1.0}),
        Op("long", seconds={"*": 3.0}),
        Op("update", seconds=slow, group="g5"),
    )
    tensors = tuple(Tensor(f"w{i}", i, 4, (8,), resident=True) for i in range(8))
    graph = Graph("g", ops, (*tensors, Tensor("d", 8, 0, (9, 10))))
    return Problem(graph, devices(1, 1, bandwidth=1e9))


def _beside(problem: Problem, time_limit: float | None = None, evaluations: int = 100) -> Search:
    """A search that knows the plan with the parameters on the device that does not read them."""
    search = Search(
        problem, budget=Budget(time_limit=time_limit, evaluation_limit=evaluations), threads=1
    )
    search.offer(np.array([1] * 8 + [0, 0, 1], np.int32), np.arange(11, dtype=np.int32), ["eager"])
    return search


GRAPH = Graph(
    "fork",
    tuple(Op(name, "aten.mm", seconds={"*": 1.0}) for name in "abcd"),
    (Tensor("a:0", 0, 8, (1, 2)), Tensor("b:0", 1, 8, (3,)), Tensor("c:0", 2, 8, (3,))),
)
DEVICES = (Device("d0", kind="cpu"), Device("d1", kind="cpu"))
TWO = situate.Cluster("two", DEVICES, (Link("*", "*", bandwidth=1e12),))


def planned(step: float, contention: float = 1.0) -> situate.Result:
    measured = [MeasuredDevice(d.name, d.kind, contention={"matmul": contention}) for d in DEVICES]
    costs = Costs("here", "today", {}, measured, [], 0.0, step)
    return situate.solve(situate.Problem(GRAPH, TWO, costs=costs), evaluations=200)


# Several devices must be worth it where costs were measured.
@pytest.mark.parametrize("step", [0.0, 0.9])
def test_several_are_used_where_they_gain_more_than_they_cost(step: float) -> None:
    result = planned(step)
    assert len(result.devices_used) == 2
    assert result.value == pytest.approx(3.0)


def test_one_is_used_where_a_step_on_several_costs_what_it_gains() -> None:
    result = planned(1.1)
    assert result.devices_used == ["d0"]
    assert result.value == pytest.approx(4.0)


def test_one_is_used_where_devices_slow_one_another_down_by_what_several_gain() -> None:
    assert len(planned(0.0, contention=1.8).devices_used) == 2
    assert planned(0.0, contention=2.2).devices_used == ["d0"]


def test_without_measured_costs_the_model_decides() -> None:
    result = situate.solve(situate.Problem(GRAPH, TWO), evaluations=200)
    assert len(result.devices_used) == 2
