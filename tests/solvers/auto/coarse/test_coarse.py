"""Large graphs are planned as far fewer ops first."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from situate.data.cuts import parse_cuts
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.auto.coarse import plan_coarse
from situate.solvers.auto.improve import shorten
from situate.solvers.budget import Budget
from situate.solvers.heuristics.baselines import single
from situate.solvers.heuristics.list_rules import heft
from situate.solvers.search import Search
from tests.solvers.auto.coarse.unrolled import unrolled
from tests.solvers.families import apart, devices
from tests.solvers.slice_pipelines.uniform import uniform

coarse = import_module("situate.solvers.auto.coarse")


@pytest.fixture(autouse=True)
def _small_graphs_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarse, "MIN_OPS", 400)
    monkeypatch.setattr(coarse, "LEVELS", ((40, 0.3), (100, 0.2)))
    monkeypatch.setattr(coarse, "MIN_RATIO", 4)


def planned(problem: Problem, evaluations: int = 400) -> Search:
    """A search that has offered one device, and then a coarse plan."""
    search = Search(problem, budget=Budget(evaluation_limit=evaluations), threads=1)
    single(search)
    plan_coarse(search, heft, shorten)
    return search


def test_a_coarse_plan_is_better_than_one_device() -> None:
    problem = unrolled(16, 8)
    search = planned(problem)
    assert search.incumbent.feasible
    assert len(np.unique(search.incumbent.placement)) == 2
    assert search.incumbent.value < 0.8 * problem.fastest.sum()


@pytest.mark.parametrize(
    "problem",
    [
        unrolled(4, 4),
        replace(unrolled(16, 8), objective="memory"),
        replace(unrolled(16, 8), cluster=devices(1.0, 1.0, transfers="blocking")),
        replace(
            unrolled(16, 8), graph=replace(unrolled(16, 8).graph, cuts=parse_cuts(["features=2"]))
        ),
        Problem(apart(500, persistent=1, group="all"), devices(1.0, 1.0)),
        uniform(2, 20, chunks=8),
    ],
    ids=["few ops", "memory", "blocking", "parts", "runs of one op", "few ops of slices"],
)
def test_other_graphs_are_planned_op_by_op(problem: Problem) -> None:
    search = Search(problem, budget=Budget(evaluation_limit=400), threads=1)
    single(search)
    before = search.budget.evaluations
    plan_coarse(search, heft, shorten)
    assert search.budget.evaluations == before


# A step of slices.
def test_a_step_of_slices_is_planned_as_segments_of_its_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coarse, "MIN_OPS_OF_SLICES", 400)
    monkeypatch.setattr(coarse, "MIN_RATIO", 1)
    monkeypatch.setattr(coarse, "MAX_SEGMENTS", 2)
    problem = uniform(2, 20, chunks=8)
    search = Search(problem, budget=Budget(evaluation_limit=2000), threads=1)
    single(search)
    plan_coarse(search, heft, shorten)
    search.incumbent.schedule.verify(problem)
    assert len(np.unique(search.incumbent.placement)) == 2
    assert search.incumbent.value < 0.6 * problem.fastest.sum()


def test_without_time_for_a_level_there_is_none() -> None:
    search = Search(unrolled(16, 8), budget=Budget(time_limit=1.0), threads=1)
    single(search)
    for _ in range(9):
        search.budget.record_offer(0.5)
    before = search.budget.evaluations
    plan_coarse(search, heft, shorten)
    assert search.budget.evaluations == before


def test_the_plan_so_far_survives_an_interruption() -> None:
    def interrupted(level: Search) -> None:
        heft(level)
        raise KeyboardInterrupt

    search = Search(unrolled(16, 8), budget=Budget(evaluation_limit=400), threads=1)
    single(search)
    before = search.incumbent.value
    with pytest.raises(KeyboardInterrupt):
        plan_coarse(search, interrupted, shorten)
    assert search.incumbent.value < before


@pytest.mark.parametrize("method", ["partition_dfs", "heft", "m_etf"])
@pytest.mark.parametrize("layers", [2, 8])
def test_auto_is_no_worse_than_a_rule_with_as_many_evaluations(method: str, layers: int) -> None:
    """Of two layers, the graph is small; of eight, it is planned on levels."""
    problem = unrolled(16, layers)
    best = solve(problem, method, evaluations=600, threads=1)
    assert solve(problem, evaluations=600, threads=1).value <= best.value


def test_the_seed_alone_decides() -> None:
    problem = unrolled(16, 8)
    first, other = (solve(problem, evaluations=500, seed=3, threads=t) for t in (1, 2))
    assert np.array_equal(first.placement, other.placement)
    assert (first.value, first.evaluations) == (other.value, other.evaluations)
