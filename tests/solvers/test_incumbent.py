"""The incumbent: which candidate is best, and whether the bound proves it."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.solvers.search import Search
from tests.solvers.families import apart, devices, problem
from tests.solvers.searches import decision, search_of

# A feasible plan beats every infeasible one; otherwise the value decides.


def test_the_best_offer_is_kept() -> None:
    search = search_of()
    search.offer(*decision(1, 1, 1, 1))
    search.offer(*decision(0, 0, 0, 1))
    search.offer(*decision(0, 0, 0, 0))
    assert search.best is not None
    assert search.best.placement.tolist() == [0, 0, 0, 1]
    assert [value for _, _, value in search.history] == [8, 3]


def test_what_fits_is_better_than_what_is_fast() -> None:
    small = Problem(apart(4, persistent=1), devices(1, 2, memory=3))
    search = search_of(small)
    search.offer(*decision(0, 0, 0, 1))
    fast_and_fat = search.offer(*decision(0, 0, 0, 0))
    assert not fast_and_fat.feasible
    assert search.best is not None
    assert search.best.placement.tolist() == [0, 0, 0, 1]


def test_of_two_that_do_not_fit_the_one_with_fewer_bytes_too_many_is_better() -> None:
    search = search_of(Problem(apart(4, persistent=3), devices(1, 2, memory=5)))
    search.offer(*decision(0, 0, 0, 0))
    better = search.offer(*decision(0, 0, 0, 1))
    assert search.best is better
    assert better.excess == 4


# A feasible plan that meets the bound is optimal.


def test_a_bound_that_is_met_ends_the_search() -> None:
    search = search_of(bound=3.0, evaluations=1000)
    search.offer(*decision(0, 0, 0, 0))
    assert not search.finished()
    search.offer(*decision(0, 0, 0, 1))
    assert search.proved()
    assert search.finished()


def test_a_plan_that_does_not_fit_proves_nothing() -> None:
    search = search_of(Problem(apart(4, persistent=1), devices(1, 2, memory=2)), bound=100.0)
    search.offer(*decision(0, 0, 0, 0))
    assert not search.proved()


def test_a_bound_is_raised_and_never_lowered():
    search = Search(problem("chain"), 5.0)
    search.raise_bound(4.0, "lower")
    assert search.lower_bound == 5
    search.raise_bound(6.0, "CP-SAT")
    assert (search.lower_bound, search.bounded_by) == (6, "CP-SAT")
