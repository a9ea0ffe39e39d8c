"""Baechi's list rules, and lookahead orders of large steps, among the first plans of `auto`."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest

from situate.bench.families.unequal import layered as large_layered
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.solvers import solve
from situate.solvers.auto.construct import _offer_earliest
from situate.solvers.auto.improve.windows import MIN_OPS
from situate.solvers.budget import RECENT_OFFERS, Budget
from situate.solvers.heuristics.baselines import single
from situate.solvers.heuristics.list_rules import heft
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


# A large step with time for few plans is swept before all rules have run.


def _hurried(ops: int, plan_coarse: Callable[[Search], None], offer_seconds: float) -> Search:
    problem = Problem(large_layered(ops, 0), Cluster.preset("h100-8"))
    search = Search(problem, budget=Budget(1000.0), threads=1)
    single(search)
    for _ in range(RECENT_OFFERS):
        search.budget.record_offer(offer_seconds)
    phase._offer_in_a_hurry(search, plan_coarse)
    return search


def test_a_list_schedule_is_swept_where_no_coarse_plan_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(phase, "OPS_OF_A_LARGE_STEP", MIN_OPS)
    search = _hurried(MIN_OPS, lambda _: None, offer_seconds=10.0)
    assert search.incumbent.value < 0.99 * solve(search.problem, "heft").value


def test_a_coarse_plan_that_leads_is_swept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase, "OPS_OF_A_LARGE_STEP", MIN_OPS)
    monkeypatch.setattr(phase, "_offer_critical", pytest.fail)
    search = _hurried(MIN_OPS, heft, offer_seconds=10.0)
    assert search.incumbent.value < 0.99 * solve(search.problem, "heft").value


@pytest.mark.parametrize(("ops", "offer_seconds"), [(MIN_OPS, 0.1), (MIN_OPS - 1, 10.0)])
def test_small_steps_and_long_searches_do_not_hurry(
    ops: int, offer_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phase, "OPS_OF_A_LARGE_STEP", MIN_OPS)
    search = _hurried(ops, pytest.fail, offer_seconds)
    assert len(np.unique(search.incumbent.placement)) == 1
