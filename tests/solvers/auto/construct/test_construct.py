"""Baechi's list rules, and lookahead orders of large steps, among the first plans of `auto`."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.solvers import solve
from situate.solvers.auto.construct import _offer_earliest
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.families import devices, layered

phase = importlib.import_module("situate.solvers.auto.construct")


def _offered(problem: Problem, **limits: float) -> Search:
    search = Search(problem, budget=Budget(**limits), threads=1)
    _offer_earliest(search)
    return search


@pytest.mark.parametrize("seed", range(5))
def test_what_it_offers_is_no_worse_than_m_etf(seed: int) -> None:
    problem = Problem(layered(6, 6, seed), devices(1, 1, 2))
    assert _offered(problem).incumbent.value <= solve(problem, "m_etf").value


def test_waiting_for_children_saves_transfers() -> None:
    """Somewhere among these a device that waits for the rest's first op makes the step shorter."""
    problems = [Problem(layered(6, 6, seed), devices(1, 1, 2)) for seed in range(10)]
    assert any(_offered(p).incumbent.value < solve(p, "m_etf").value for p in problems)


def test_the_makespan_alone_is_what_they_are_for() -> None:
    assert _offered(Problem(layered(3, 3, 0), devices(1, 1), "memory")).best is None


@pytest.mark.parametrize(("rules", "offered"), [("regal", True), ("dnn-partitioning", False)])
def test_atomic_transfers_are_not_what_they_are_for(rules: str, offered: bool) -> None:
    problem = Problem(layered(3, 3, 0), devices(1, 1), rules=RULES[rules])
    assert (_offered(problem).best is not None) == offered


def test_nothing_is_begun_without_time_for_it() -> None:
    search = Search(
        Problem(layered(3, 3, 0), devices(1, 1)), budget=Budget(time_limit=1.0), threads=1
    )
    search.budget.record_offer(0.1)
    _offer_earliest(search)
    assert search.best is None


def test_plans_that_do_not_fit_do_not_count() -> None:
    problem = Problem(layered(6, 6, 0), devices(1, 1, memory=1))
    search = Search(problem, threads=1)
    search.offer(np.zeros(problem.n, np.int32), np.arange(problem.n, dtype=np.int32))
    before = search.incumbent
    _offer_earliest(search)
    assert search.incumbent is before


# The best plan of a step that one device cannot hold is listed anew, although it fits.
@pytest.mark.parametrize(("memory", "listed"), [(None, False), (60, True)])
def test_beyond_one_device_the_best_placement_gets_lookahead_orders(
    memory: int | None, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(layered(6, 6, 0, persistent=2), devices(1, 1, memory=memory))
    calls = list[bool]()
    monkeypatch.setattr(
        phase, "offer_placed_orders", lambda search: calls.append(search.incumbent.feasible)
    )
    search = Search(problem, budget=Budget(evaluation_limit=400), threads=1)
    phase.construct(search, lambda _: None)
    assert (True in calls) == listed
