"""Orders of ops and transfers where transfers are blocking."""

from __future__ import annotations

import math

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from tests.oracle.item_orders import best_time
from tests.oracle.problems import blocking_problem

PROBLEMS = 120


def control_edges_block() -> Problem:
    """The shortest step sends a control edge before what its device would rather run."""
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
