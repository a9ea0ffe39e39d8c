"""By upward rank what the longest rest of the step waits for goes first; for memory the order of
less on one device is taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.topology import places, topological_by
from situate.data.tree_order import tree_order
from situate.simulation.decoding import decode, is_topological
from situate.solvers import auto, solve
from situate.solvers.auto.second_orders import _fullest, by_rank, frugal_order
from situate.solvers.heuristics import topological
from situate.solvers.search import Search
from tests.data.test_tree_order import tree
from tests.oracle.problems import random_problem
from tests.solvers.families import chain, devices, graph, layered


def ranked(problem: Problem) -> np.ndarray:
    return by_rank(Search(problem, evaluations=10, threads=1))


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


def alone(small: Graph) -> Problem:
    return Problem(small, devices(1), "memory")


def peak(problem, order) -> int:
    held = int(problem.persistent.sum())
    placement = np.zeros(problem.n, np.int32)
    return int(decode(problem, placement, order, "serial").peak[0]) - held


@pytest.mark.parametrize("seed", range(30))
def test_it_is_known_what_an_order_needs(seed: int) -> None:
    drawn = random_problem(seed)
    problem = alone(layered(4, 3, seed, workspace=seed % 3) if seed % 2 else tree(9, seed))
    for order in (problem.depth_first, np.array(problem.graph.order, np.int32)):
        assert _fullest(problem, order) == peak(problem, order)
    assert _fullest(drawn, drawn.depth_first) >= 0


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_less_memory_is_taken(seed: int) -> None:
    for problem in (alone(layered(5, 4, seed)), alone(tree(40, seed))):
        as_tree = topological_by(problem, places(tree_order(problem).order))
        found = frugal_order(Search(problem, evaluations=9))
        assert is_topological(problem, found)
        assert peak(problem, found) == min(
            peak(problem, problem.depth_first), peak(problem, as_tree)
        )


def test_without_time_it_is_depth_first() -> None:
    problem = alone(tree(40, 1))
    search = Search(problem, time_limit=0.0)
    assert np.array_equal(frugal_order(search), problem.depth_first)
