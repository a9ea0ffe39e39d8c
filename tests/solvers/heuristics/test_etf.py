"""`etf` takes the pair of op and device that can start first."""

from __future__ import annotations

import numpy as np

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from tests.solvers.families import apart, chain, devices, fork, layered


def test_equal_devices_share_equal_work() -> None:
    assert solve(Problem(apart(8), devices(1, 1)), "etf").value == 4


def test_a_chain_stays_where_it_began() -> None:
    result = solve(Problem(chain(6), devices(1, 1)), "etf")
    assert len(set(result.placement)) == 1
    assert result.value == 6


def test_the_first_start_counts_not_the_first_end() -> None:
    """An idle slow device starts an op at once, though a fast one would end it sooner."""
    result = solve(Problem(apart(2), devices(1, 2)), "etf")
    assert np.bincount(result.placement).tolist() == [1, 1]


def test_a_long_way_is_not_taken_for_a_busy_device() -> None:
    assert solve(Problem(fork(5, size=1000), devices(1, 1)), "etf").value == 5


def test_a_short_one_is() -> None:
    assert solve(Problem(fork(6, size=0), devices(1, 1)), "etf").value == 4


def test_ties_go_to_the_higher_rank() -> None:
    """The op that the rest waits for goes before the one that nothing waits for."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in ("last", "first", "then"))
    problem = Problem(Graph("g", ops, (Tensor("t", 1, 1, (2,)),)), devices(1))
    assert solve(problem, "etf").order[0] == 1


def test_a_full_device_comes_last() -> None:
    result = solve(Problem(apart(6, persistent=10), devices(1, 1, memory=30)), "etf")
    assert result.feasible
    assert result.schedule.peak.tolist() == [30, 30]


def test_a_wide_graph_needs_no_quadratic_scan() -> None:
    """30,000 ready ops at once; a scan of all pairs would not end."""
    result = solve(Problem(apart(30_000), devices(1, 1, 1)), "etf")
    assert result.value == 10_000


def test_every_op_is_placed_once() -> None:
    problem = Problem(layered(30, 20, 1), devices(1, 2, 1))
    result = solve(problem, "etf")
    assert sorted(result.order.tolist()) == list(range(problem.n))
    result.schedule.verify(problem)
