"""The budget: its clock, its evaluations, and limits that end a search in the middle."""

from __future__ import annotations

from typing import Any

import pytest

from situate.solvers import solve
from situate.solvers.budget import RECENT_OFFERS, OutOfTime
from situate.solvers.incumbent import Candidate
from tests.solvers.families import problem
from tests.solvers.searches import decision, search_of

# A budget is a fraction that falls to zero.


def test_the_budget_runs_out_by_evaluations() -> None:
    search = search_of(evaluations=4)
    assert search.budget.remaining() == 1
    search.offer(*decision(0, 0, 0, 0))
    assert search.budget.remaining() == 0.5
    search.offer(*decision(0, 0, 0, 0))
    assert search.finished()


def test_the_budget_runs_out_by_time() -> None:
    assert search_of(time_limit=0.0).finished()
    assert not search_of(time_limit=1e9).finished()
    assert search_of(time_limit=1e-9).finished()


# Work that cannot stop halfway begins only if the time is likely to be enough.


def test_what_takes_as_long_as_the_median_offer_is_begun_only_if_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, took = [0.0], iter((1.0, 3.0, 30.0, 3.0, 3.0))
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    search = search_of(time_limit=60.0)
    decode = search.decoding.decode

    def slow(*given: Any) -> Candidate:
        now[0] += next(took)
        return decode(*given)

    monkeypatch.setattr(search.decoding, "decode", slow)
    assert search.budget.affords(1e9), "nothing is known yet"
    for _ in range(5):
        search.offer(*decision(0, 0, 0, 0), ["eager"])
    assert search.budget.affords(6)
    assert not search.budget.affords(7)
    now[0] = 58.0
    assert search.budget.remaining() > 0
    assert search.finished()


def test_without_a_time_limit_there_is_time_for_everything() -> None:
    search = search_of(evaluations=1000)
    search.offer(*decision(0, 0, 0, 0))
    assert search.budget.affords(1e9)


# An enforced limit ends a search in the middle of its rules, but not before it has a plan.


def test_a_limit_that_is_kept_ends_the_search_after_its_first_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("situate.solvers.budget.MIN_ENFORCED_SECONDS", 0.0)
    search = search_of(time_limit=0.0, evaluations=None, enforced=True)
    search.offer(*decision(0, 0, 0, 0))
    assert search.budget.evaluations == 1
    assert search.overtime == "first plan"
    with pytest.raises(OutOfTime):
        search.offer(*decision(0, 0, 0, 1))


def test_an_offer_that_would_end_after_the_limit_does_not_begin():
    search = search_of(time_limit=60.0, evaluations=None, enforced=True)
    search.offer(*decision(0, 0, 0, 0))
    for _ in range(RECENT_OFFERS):
        search.budget.record_offer(90.0)
    with pytest.raises(OutOfTime):
        search.offer(*decision(0, 0, 0, 1))


def test_auto_says_that_its_first_plan_took_longer_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("situate.solvers.budget.MIN_ENFORCED_SECONDS", 0.0)
    result = solve(problem("layered"), time_limit=0.0)
    assert (result.overtime, result.feasible, result.evaluations) == ("first plan", True, 1)
    assert solve(problem("layered"), evaluations=50).overtime is None
