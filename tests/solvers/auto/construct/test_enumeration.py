"""Enumeration of the decisions of small problems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.auto.construct.enumeration import MOST_OPS, look_at_all
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.oracle.item_orders import best_time
from tests.oracle.problems import blocking_problem, small_problem
from tests.solvers.exhaustive import optimum
from tests.solvers.families import apart, chain, devices

PLENTY = 100_000
"""Evaluations."""


def _solved(problem: Problem, evaluations: int = PLENTY) -> Result:
    result = solve(problem, evaluations=evaluations)
    result.schedule.verify(problem, allow_overflow=not result.feasible)
    return result


def _agree(result: Result) -> bool:
    best = optimum(result.problem)
    if not result.feasible:
        return best == math.inf
    return math.isclose(result.value, best, rel_tol=1e-12) and result.lower_bound <= best


# Small problems, of which every decision is looked at.
@pytest.mark.parametrize("kind", range(12))
def test_it_agrees_with_brute_force(kind: int) -> None:
    """On all of these; of 100 problems of up to seven ops it may miss one."""
    for seed in range(kind, 24, 12):
        assert _agree(_solved(small_problem(seed))), seed


@pytest.mark.parametrize("seed", [1, 32, 62, 84, 116])
def test_it_finds_what_fits_in_few_orders_only(seed: int) -> None:
    """The optimum is by the serial decoder, in orders that put off ops until they are needed."""
    result = _solved(small_problem(seed))
    assert result.feasible
    assert _agree(result)


def _steady(cluster: Cluster) -> Problem:
    """The last op takes no time. The tensor of the second is too large for its device, and takes no
    memory if it is made at the instant at which the last op has all else."""
    ops = [Op("far", seconds={"*": 1.0}, device="d0"), Op("large", seconds={"*": 0.0}, device="d1")]
    ops += [Op("join", seconds={"*": 0.0}, device="d1")]
    tensors = (Tensor("t", 0, 2, (2,)), Tensor("u", 1, 9, (2,)))
    return Problem(Graph("steady", tuple(ops), tensors), cluster, "throughput")


def test_a_plan_for_throughput_fits_by_the_serial_decoder_alone() -> None:
    pair = (Device("d0", "gpu"), Device("d1", "gpu", memory=4))
    cluster = Cluster("pair", pair, (Link("*", "*", 1.0),), transfers="blocking")
    result = _solved(_steady(cluster))
    assert result.feasible
    assert (result.decoder, result.value) == ("serial", 3)


def _begun(problem: Problem, **budget: Any) -> Search:
    """A search that knows one plan."""
    limits = {"time_limit": None, "evaluation_limit": None} | budget
    search = Search(problem, budget=Budget(**limits), threads=1)
    first = problem.allowed.argmax(axis=1)[problem.unit].astype(np.int32)
    search.offer(first, np.array(problem.graph.order, np.int32))
    return search


def test_it_ends_when_nothing_better_is_left() -> None:
    result = _solved(small_problem(32), 10**9)
    assert not result.optimal
    assert result.evaluations < 10**6


def test_with_too_few_evaluations_nothing_is_looked_at() -> None:
    search = _begun(small_problem(32), evaluation_limit=500)
    before = search.budget.evaluations
    assert not look_at_all(search)
    assert search.budget.evaluations == before


def test_larger_problems_are_left_to_the_search() -> None:
    assert not look_at_all(_begun(Problem(chain(MOST_OPS + 1), devices(1, 1))))
    assert not look_at_all(_begun(Problem(chain(7), devices(*[1] * 9))))


def test_the_clock_ends_it() -> None:
    seconds = [1.0, 1.1, 1.2, 1.3, 1.7, 1.9, 2.3]
    problem = Problem(apart(7, seconds=seconds), devices(1, 1, 2))
    assert not look_at_all(_begun(problem, time_limit=0.0))
    assert look_at_all(_begun(problem))


PROBLEMS = 120


def control_edges_block() -> Problem:
    """The shortest step sends a control edge before the op that its device prefers."""
    pair = (Device("d0", "gpu", memory=314), Device("d1", "gpu", memory=1677))
    link = Link("*", "*", 1.0, 0.0, "to-{to}")
    seconds = (2.0, 0.5, 0.5, 2.0, 0.25, 0.5)
    workspace = (564, 3, 0, 0, 8, 0)
    ops = tuple(
        Op(f"o{i}", seconds={"*": s}, workspace=w, persistent=3 * (i == 2))
        for i, (s, w) in enumerate(zip(seconds, workspace, strict=True))
    )
    sizes = ((2, 9), (5, 397), (3, 6), (1, 4), (4, 858), (0, 820))
    tensors = tuple(Tensor(f"t{i}", op, size) for i, (op, size) in enumerate(sizes))
    control = ((4, 0), (2, 5), (2, 1), (4, 1), (2, 3))
    cluster = Cluster("pair", pair, (link,), transfers="blocking", synchronisation=0.17)
    return Problem(Graph("control", ops, tensors, control), cluster, rules="regal")


# Orders of ops and transfers where transfers are blocking.
@pytest.mark.parametrize("method", ["auto", "cp_sat"])
def test_transfers_have_an_urgency_of_their_own(method: str) -> None:
    if method == "cp_sat":
        pytest.importorskip("ortools")
    problem = control_edges_block()
    result = solve(problem, method, evaluations=100_000, threads=1)
    result.schedule.verify(problem)
    assert result.value == pytest.approx(best_time(problem), rel=1e-9)
    assert result.transfers is not None


@pytest.mark.parametrize("first", range(0, PROBLEMS, 20))
def test_no_order_of_ops_and_transfers_is_shorter(first: int) -> None:
    for seed in range(first, first + 20):
        problem = blocking_problem(seed)
        result = solve(problem, evaluations=1_000_000, threads=1)
        result.schedule.verify(problem, allow_overflow=not result.feasible)
        value = result.value if result.feasible else math.inf
        assert best_time(problem, value) >= value * (1 - 1e-12), seed
