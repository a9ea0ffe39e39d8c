"""`random` draws uniformly among what is allowed, and keeps to its number of draws."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.budget import Budget
from situate.solvers.heuristics import random_search
from situate.solvers.search import Search
from tests.solvers.families import apart, devices, problem


def _drawn(of: Problem, evaluations: int) -> np.ndarray:
    """Placements (evaluations, n) as they are drawn."""
    search = Search(of, -1.0, budget=Budget(evaluation_limit=evaluations), threads=1)
    placements = []
    offer = search.offer
    search.offer = lambda placement, *rest: placements.append(placement) or offer(placement, *rest)  # type: ignore[method-assign]
    random_search.run(search)
    return np.array(placements)


def test_it_draws_as_many_as_asked() -> None:
    assert _drawn(problem("layered"), 37).shape == (37, 20)


def test_without_a_number_it_draws_a_thousand() -> None:
    assert solve(problem("bus"), "random", time_limit=60).evaluations == random_search.SAMPLES


def test_devices_are_drawn_evenly_among_those_allowed() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"d0": 1.0, "d2": 1.0}))
    placements = _drawn(Problem(Graph("g", ops), devices(1, 1, 1)), 3000)
    assert np.bincount(placements[:, 0]) == pytest.approx([1000] * 3, rel=0.1)
    assert np.bincount(placements[:, 1]) == pytest.approx([1500, 0, 1500], rel=0.1)


def test_a_group_is_drawn_together() -> None:
    placements = _drawn(Problem(apart(4, group="g"), devices(1, 1)), 50)
    assert (placements == placements[:, :1]).all()
    assert len(np.unique(placements)) == 2


def test_the_seed_decides() -> None:
    results = [
        solve(problem("bus"), "random", time_limit=None, evaluations=9, seed=seed)
        for seed in (3, 3, 4)
    ]
    assert np.array_equal(results[0].order, results[1].order)
    assert not np.array_equal(results[0].order, results[2].order)
