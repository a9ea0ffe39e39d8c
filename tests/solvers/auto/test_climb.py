"""Climbing within `auto`: from its best plan, within a share of its budget."""

from __future__ import annotations

import sys

import pytest

from situate.data.problem import Problem
from situate.results.result import Progress
from situate.solvers.auto.climb import (
    CLIMB_SHARE,
    SECOND_ASCENT_EVALUATIONS,
    SEED_RANGE,
    TRIAL_EVALUATIONS,
    climb,
)
from situate.solvers.budget import Budget
from situate.solvers.heuristics.baselines import single
from situate.solvers.heuristics.list_rules import heft
from situate.solvers.local_search.hill_climbing import HillClimber
from situate.solvers.search import Search
from tests.solvers.families import chain, devices, problem
from tests.solvers.learning import branching


def searching(of: Problem, evaluations: int, rule=single, threads: int = 1) -> Search:
    """A search that has heard one rule."""
    search = Search(of, budget=Budget(evaluation_limit=evaluations), threads=threads)
    rule.run(search)
    return search


def test_it_betters_the_plan_that_it_began_with():
    search = searching(branching(), 2000)
    before = search.best.value
    climb(search)
    assert search.best.value < 0.6 * before


@pytest.mark.parametrize("evaluations", [10, 100, 1000])
def test_it_takes_its_share_of_what_is_left(evaluations):
    search = searching(branching(), evaluations)
    left = evaluations - search.budget.evaluations
    climb(search)
    assert evaluations - search.budget.evaluations >= (1 - CLIMB_SHARE) * left - 20


def test_from_where_it_ended_it_ends_early():
    search = searching(branching(), 20_000)
    climb(search)
    again, value = search.budget.evaluations, search.best.value
    climb(search)
    assert search.best.value <= value
    assert search.budget.evaluations - again < 0.5 * CLIMB_SHARE * 20_000


def interrupting(of: Problem, evaluations: int) -> Search:
    """A search that is interrupted after so many evaluations."""

    def interrupt(progress: Progress) -> None:
        if progress.evaluations >= evaluations:
            raise KeyboardInterrupt

    search = Search(of, budget=Budget(evaluation_limit=100_000), threads=1, on_progress=interrupt)
    single(search)
    return search


@pytest.mark.parametrize("evaluations", [40, 70, 500])
def test_what_it_has_found_outlives_an_interrupt(evaluations):
    search = interrupting(branching(), evaluations)
    before = search.best.value
    with pytest.raises(KeyboardInterrupt):
        climb(search)
    assert search.best.value < before


def test_it_tells_of_what_is_better_as_it_goes():
    seen: list[float] = []
    search = Search(
        branching(),
        budget=Budget(evaluation_limit=4000),
        threads=1,
        on_progress=lambda progress: seen.append(progress.value),
    )
    single(search)
    climb(search)
    assert len(set(seen)) > 3


def test_it_has_some_tries_in_any_case():
    """No neighbour of a chain on one device is ahead of it."""
    search = searching(Problem(chain(40), devices(1, 1)), 5 * TRIAL_EVALUATIONS)
    before = search.budget.evaluations
    climb(search)
    assert TRIAL_EVALUATIONS <= search.budget.evaluations - before < TRIAL_EVALUATIONS + 20


@pytest.mark.parametrize(("times", "seeds"), [(5, {0}), (20, {0, SEED_RANGE})])
def test_with_plenty_of_evaluations_it_begins_twice(monkeypatch, times, seeds):
    asked: set[int] = set()

    class Noted(HillClimber):
        def ask(self, k):
            asked.add(self._seed)
            return super().ask(k)

    monkeypatch.setattr(sys.modules[climb.__module__], "HillClimber", Noted)
    climb(searching(branching(), times * SECOND_ASCENT_EVALUATIONS))
    assert asked == seeds


def test_where_no_neighbour_is_better_it_ends():
    search = searching(Problem(chain(6), devices(1, 1)), 1_000_000)
    climb(search)
    assert search.budget.evaluations < 1000


def test_without_time_it_does_nothing():
    search = Search(branching(), budget=Budget(time_limit=0.0), threads=1)
    single(search)
    before = search.budget.evaluations
    climb(search)
    assert search.budget.evaluations == before


def test_a_plan_that_fits_replaces_one_that_does_not():
    search = searching(problem("tight"), 2000)
    assert not search.best.feasible
    climb(search)
    assert search.best.feasible


@pytest.mark.parametrize("rule", [single, heft])
def test_threads_change_nothing(rule):
    one, two = (
        searching(branching(), 20 * SECOND_ASCENT_EVALUATIONS, rule, threads) for threads in (1, 2)
    )
    climb(one)
    climb(two)
    assert one.best.value == two.best.value
    assert one.budget.evaluations == two.budget.evaluations
