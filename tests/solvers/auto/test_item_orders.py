"""Orders of ops and transfers where transfers are blocking."""

from __future__ import annotations

import math

import pytest

from situate.solvers import solve
from tests.oracle.item_orders import best_time
from tests.oracle.problems import blocking_problem

PROBLEMS = 120


@pytest.mark.parametrize("first", range(0, PROBLEMS, 20))
def test_no_order_of_ops_and_transfers_is_shorter(first: int) -> None:
    for seed in range(first, first + 20):
        problem = blocking_problem(seed)
        result = solve(problem, evaluations=1_000_000, threads=1)
        result.schedule.verify(problem, allow_overflow=not result.feasible)
        value = result.value if result.feasible else math.inf
        assert best_time(problem, value) >= value * (1 - 1e-12), seed
