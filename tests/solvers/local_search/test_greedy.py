"""`local_search` moves one op at a time and takes plans that are no worse."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.results.result import Progress
from situate.solvers import solve
from situate.solvers.local_search.greedy import _random_order, _random_plan
from tests.oracle.problems import random_problem
from tests.solvers.families import OBJECTIVES, apart, chain, devices, fork, layered


def searched(problem: Problem, evaluations: int = 2000, **changes: int) -> float:
    return solve(problem, "local_search", evaluations=evaluations, **changes).value


def test_equal_devices_share_equal_work() -> None:
    assert searched(Problem(apart(8), devices(1, 1))) == 4


def test_a_chain_comes_together() -> None:
    """From ops at random, of which each alone gains by going to its neighbours' device."""
    assert searched(Problem(chain(6, size=10), devices(1, 1))) == 6


def test_an_order_is_found_as_well() -> None:
    """The op that all of d1 waits for is found to go first on d0."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, device=f"d{j // 9}") for j in range(18))
    after = tuple(range(9, 18))
    graph = Graph("g", ops, (Tensor("t", 8, 1, after),))
    assert searched(Problem(graph, devices(1, 1, bandwidth=np.inf))) == 10


@pytest.mark.parametrize(("objective", "part"), [("time", 0.9), ("memory", 1), ("throughput", 1)])
def test_it_is_better_than_as_many_random_plans(objective: str, part: float) -> None:
    problem = Problem(layered(10, 6, 1), devices(1, 1, 2), objective)  # type: ignore[arg-type]
    random = solve(problem, "random", evaluations=2000).value
    assert searched(problem) <= part * random


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_threads_change_nothing(objective: str) -> None:
    problem = Problem(layered(5, 5, 1), devices(1, 1, 2), objective)  # type: ignore[arg-type]
    result = [
        solve(problem, "local_search", evaluations=15_000, threads=threads, seed=3)
        for threads in (1, 3)
    ]
    assert result[0].history[-1][1:] == result[1].history[-1][1:]
    assert np.array_equal(result[0].placement, result[1].placement)
    assert np.array_equal(result[0].order, result[1].order)


def test_ctrl_c_returns_what_was_found_by_then() -> None:
    """Also in the middle of an ascent."""
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 4:
            raise KeyboardInterrupt

    problem = Problem(layered(40, 20, 1), devices(1, 1, 2))
    result = solve(problem, "local_search", time_limit=60, on_progress=interrupt)
    result.schedule.verify(problem)
    assert result.value < seen[0].value


def test_other_seeds_find_other_plans() -> None:
    problem = Problem(layered(10, 6, 1), devices(1, 1, 2))
    assert len({searched(problem, 500, seed=seed) for seed in range(5)}) > 1


def test_more_ascents_are_no_worse() -> None:
    problem = Problem(fork(9, size=2), devices(1, 1))
    assert searched(problem, 12_000) <= searched(problem, 1000)


def test_all_chains_of_a_time_limit_are_used() -> None:
    problem = Problem(layered(6, 4, 1), devices(1, 1))
    result = solve(problem, "local_search", time_limit=0.2, threads=2)
    result.schedule.verify(problem)


@pytest.mark.parametrize("seed", range(5))
def test_it_begins_with_plans_that_may_be(seed: int) -> None:
    problem = random_problem(seed)
    plan = _random_plan(problem, np.random.default_rng(seed))
    assert problem.allowed[problem.unit, plan.placement].all()
    for unit in range(problem.units):
        assert len(set(plan.placement[problem.unit == unit].tolist())) == 1


def test_orders_are_topological_and_all_are_drawn() -> None:
    problem = Problem(fork(5), devices(1))
    generator = np.random.default_rng(0)
    drawn = {tuple(_random_order(problem, generator).tolist()) for _ in range(100)}
    assert len(drawn) == 6
    assert all(order[0] == 0 and order[-1] == 4 for order in drawn)
