"""The partition with few bytes between devices among the first plans of `auto`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.solvers.auto.construct.partition import offer_partition
from situate.solvers.auto.orders import second_order
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.families import apart, devices, graph, layered


def _offered(problem: Problem, **limits: float) -> Search:
    search = Search(problem, budget=Budget(**limits), threads=1)
    with search.trying(second_order(search)):
        offer_partition(search)
    return search


# Each chain of dear tensors gets a device.
def test_branches_are_on_devices_of_their_own() -> None:
    edges = [(op, op + 3) for op in range(27)]
    placement = _offered(Problem(graph(30, edges, size=100), devices(1, 1, 1))).incumbent.placement
    of_chain = placement.reshape(10, 3)
    assert (of_chain == of_chain[0]).all()
    assert len(set(of_chain[0].tolist())) == 3


def test_the_graphs_order_and_the_order_by_rank_are_decoded() -> None:
    """The last op begins the longest path, so its place at the end of the graph's order is late."""
    edges = [(op, op + 1) for op in range(6, 11)]
    problem = Problem(graph(12, edges, seconds=1.0), devices(1, 1))
    search = Search(problem, threads=1)
    offer_partition(search)
    assert _offered(problem).incumbent.value <= search.incumbent.value


@pytest.mark.parametrize("seed", range(5))
def test_the_plan_is_valid(seed: int) -> None:
    problem = Problem(layered(8, 6, seed), devices(1, 2, 1, 1))
    incumbent = _offered(problem).incumbent
    incumbent.schedule.verify(problem)


# It is for the time of steps on several accelerators whose transfers overlap.
@pytest.mark.parametrize(
    ("cluster", "changes"),
    [
        (devices(1), {}),
        (devices(1, 1), {"objective": "memory"}),
        (devices(1, 1), {"objective": "throughput"}),
        (devices(1, 1), {"rules": RULES["regal"]}),
    ],
)
def test_other_problems_have_no_partition(cluster: Any, changes: dict[str, Any]) -> None:
    assert _offered(Problem(apart(8), cluster, **changes)).best is None


def test_a_partition_that_does_not_fit_is_dropped() -> None:
    """Even if it lacks fewer bytes than the best plan."""
    problem = Problem(apart(6, persistent=2), devices(1, 1, memory=5))
    search = Search(problem, threads=1)
    search.offer(np.zeros(problem.n, np.int32), np.arange(problem.n, dtype=np.int32))
    before = search.incumbent
    offer_partition(search)
    assert search.incumbent is before


def test_nothing_is_begun_without_time_for_it() -> None:
    search = Search(Problem(apart(8), devices(1, 1)), budget=Budget(time_limit=1.0), threads=1)
    search.budget.record_offer(0.1)
    offer_partition(search)
    assert search.best is None


def test_the_same_seed_gives_the_same_plan() -> None:
    problem = Problem(layered(8, 6, 1), devices(1, 1, 1))
    first, second = (_offered(problem).incumbent.placement for _ in range(2))
    assert np.array_equal(first, second)
