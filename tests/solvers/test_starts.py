"""Plans from a start."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.starts import plan_from


def chains(size: int = 0) -> Problem:
    """Two chains of two ops, each of which begins on the first of two equal devices."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in ("a0", "b0", "a1", "b1"))
    tensors = (Tensor("a", 0, size, (2,)), Tensor("b", 1, size, (3,)))
    return Problem(Graph("chains", ops, tensors), Cluster.identical(2))


PLACEMENT = np.array([0, 0, 1, 1], np.int32)
POOR = np.array([1, 0, 2, 3], np.int32)


# Without a search the plan is the start, in its own order.
def test_a_start_is_decoded_as_it_stands():
    plan = plan_from(chains(), PLACEMENT, POOR)
    assert plan.result.makespan == plan.start.makespan == 4.0
    assert plan.start.start.tolist() == [1.0, 0.0, 2.0, 3.0]
    assert plan.result.placement.tolist() == PLACEMENT.tolist()


# A search keeps the devices of the start, or moves ops.
def test_a_search_without_moves_keeps_devices():
    plan = plan_from(chains(), PLACEMENT, POOR, time_limit=0.2)
    assert plan.result.placement.tolist() == PLACEMENT.tolist()
    assert plan.result.makespan == pytest.approx(3.0)
    assert plan.floor <= 3.0
    assert plan.gap == pytest.approx(plan.result.makespan / plan.floor - 1)


def test_a_search_with_moves_places_anew():
    plan = plan_from(chains(), np.zeros(4, np.int32), POOR, time_limit=0.2, moves=True)
    assert plan.start.makespan == 4.0
    assert plan.result.makespan == 2.0


def test_evaluations_make_a_search_repeatable():
    one, two = (
        plan_from(chains(), PLACEMENT, POOR, evaluations=50, seed=1, threads=threads)
        for threads in (1, 2)
    )
    assert one.result.schedule.start.tolist() == two.result.schedule.start.tolist()
    assert one.result.makespan == pytest.approx(3.0)
    assert one.result.evaluations > 1


# Where ops stay, the busiest channel bounds all plans.
def test_the_floor_counts_transfers():
    ops = tuple(Op(name, seconds={"*": 0.1}) for name in ("a0", "b0", "a1", "b1"))
    tensors = (Tensor("a", 0, 1, (2,), seconds=5.0), Tensor("b", 1, 1, (3,), seconds=5.0))
    problem = Problem(Graph("slow", ops, tensors), Cluster.preset("h100-8"))
    plan = plan_from(problem, PLACEMENT, POOR)
    assert plan.floor >= 10.0 * (1 - 1e-9)
    assert plan.floor <= plan.result.makespan


# The floor bounds plans that fit.
def test_a_start_without_room_has_no_gap():
    ops = tuple(Op(name, seconds={"*": 1.0}, persistent=2**40) for name in ("a", "b"))
    problem = Problem(Graph("large", ops), Cluster.preset("h100-8"))
    plan = plan_from(problem, np.array([0, 0], np.int32), np.array([0, 1], np.int32))
    assert plan.start.makespan == 2.0
    assert plan.gap is None


def test_a_group_without_room_may_move():
    ops = (Op("a", seconds={"*": 1.0}, persistent=15 * 2**30), Op("b", seconds={"*": 1.0}))
    problem = Problem(Graph("large", ops), Cluster.preset("unequal-24-12"))
    small = min(range(problem.d), key=lambda device: problem.capacity[device])
    start = np.array([small, small], np.int32)
    plan = plan_from(problem, start, np.array([0, 1], np.int32), time_limit=0.2)
    assert plan.result.feasible
    assert plan.result.placement[0] != small
    assert plan.floor <= plan.result.makespan


def test_an_unknown_device_is_refused():
    with pytest.raises(SituateError):
        plan_from(chains(), np.full(4, 7, np.int32), POOR)
