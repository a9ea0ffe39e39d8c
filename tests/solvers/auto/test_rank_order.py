"""By upward rank what the longest rest of the step waits for goes first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from situate.data.problem import Problem
from situate.solvers import auto, solve
from situate.solvers.auto.rank_order import by_rank
from situate.solvers.budget import Budget
from situate.solvers.heuristics.fills import topological
from situate.solvers.search import Search
from tests.oracle.problems import random_problem
from tests.solvers.families import chain, devices, graph


def ranked(problem: Problem) -> np.ndarray:
    return by_rank(Search(problem, budget=Budget(evaluation_limit=10), threads=1))


def late(pinned: tuple[str | None, ...] = (None, None, None)) -> Problem:
    """Two ops of a second, of which the graph lists that first which nothing waits for."""
    waiting = graph(3, [(1, 2)], size=0, seconds=[1.0, 1.0, 5.0])
    ops = [structs.replace(op, device=to) for op, to in zip(waiting.ops, pinned, strict=True)]
    return Problem(replace(waiting, ops=tuple(ops)), devices(1, 1))


def test_the_longest_rest_goes_first() -> None:
    assert ranked(late()).tolist() == [1, 2, 0]


def test_where_nothing_tells_them_apart_the_graphs_order_holds() -> None:
    nothing_to_do = Problem(chain(5, seconds=0.0, size=0), devices(1))
    assert ranked(nothing_to_do).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(50))
def test_it_is_topological(seed: int) -> None:
    problem = random_problem(seed)
    place = np.argsort(ranked(problem))
    assert all(place[before] < place[after] for before, after in problem.graph.edges())


def test_auto_hears_its_rules_plans_by_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the devices where they have to be, only another order is sooner; these rules know none."""
    for rule in ("heft", "etf"):
        monkeypatch.setattr(auto, rule, topological)
    found = solve(late(pinned=("d0", "d0", "d1")), time_limit=None, evaluations=8)
    assert found.value == 6.0
