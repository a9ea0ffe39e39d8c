"""Seconds and evaluations that several searches share."""

from __future__ import annotations

from dataclasses import replace

from situate.data.problem import Problem
from situate.slicing.budget import Budget
from situate.solvers import solve
from tests.solvers.families import chain, devices

RESULT = solve(Problem(chain(2), devices(1)), "single")


def spent(budget: Budget, seconds: float, evaluations: int, given: float | None = None) -> Budget:
    budget.spend(replace(RESULT, seconds=seconds, evaluations=evaluations), given)
    return budget


def test_a_part_is_a_share_of_all_and_no_more_than_is_left():
    budget = Budget(10.0, 100)
    assert budget.part(0.5) == (5.0, 50)
    assert spent(budget, 8.0, 70).part(0.5) == (2.0, 30)


def test_what_is_unlimited_stays_so():
    assert Budget(None, 100).part(0.25) == (None, 25)
    assert Budget(4.0, None).part(0.25) == (1.0, None)
    assert spent(Budget(None, None), 1e9, 10**9).affords_another()


def test_a_search_that_may_go_over_the_time_is_not_begun():
    assert spent(Budget(10.0, None), 6.0, 1, given=5.0).affords_another()
    assert not spent(Budget(10.0, None), 6.0, 1, given=1.0).affords_another()


def test_no_search_is_begun_without_evaluations():
    assert spent(Budget(None, 10), 1.0, 9).affords_another()
    assert not spent(Budget(None, 10), 1.0, 10).affords_another()
