"""`justification` lists plans from both ends in turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from situate import _core
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.errors import SituateError
from situate.results.result import Progress
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from situate.solvers.budget import Budget
from situate.solvers.local_search import justification
from situate.solvers.search import Search
from tests.oracle.problems import random_problem
from tests.solvers.exhaustive import optimum
from tests.solvers.families import apart, chain, devices, fork, layered


def searched(problem: Problem, evaluations: int = 500, **changes: Any) -> float:
    return solve(problem, "justification", evaluations=evaluations, **changes).value


@pytest.mark.parametrize("seed", range(5))
def test_it_is_better_than_heft_which_it_begins_with(seed: int) -> None:
    problem = Problem(layered(10, 6, seed), devices(1, 1, 2))
    assert searched(problem) < solve(problem, "heft").value


def test_one_list_is_that_of_heft() -> None:
    problem = Problem(layered(10, 6, 1), devices(1, 1, 2))
    core = Simulator(problem).core
    chains = _core.search.make_justifications(core, 0, 1)
    chains.run(1, np.inf, 1)
    _, _, placement, order = chains.best(0)
    expected = _core.search.heft(core, 1.0)
    assert placement.tolist() == expected[0].tolist()
    assert order.tolist() == expected[1].tolist()


def test_what_waits_longest_from_the_end_goes_first() -> None:
    """Upward ranks put the two long ops behind the short ones, of which each has a longer way."""
    seconds = (2.0, 2.0, 3.0, 3.0, 3.0)
    ops = tuple(Op(f"op{j}", seconds={"*": value}) for j, value in enumerate(seconds))
    problem = Problem(Graph("graham", ops), devices(1, 1))
    assert solve(problem, "heft").value == 7
    assert searched(problem) == optimum(problem) == 7


def test_control_edges_run_backwards_too() -> None:
    """Two chains of control edges alone, one op a device at a time."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(12))
    edges = tuple((j, j + 2) for j in range(10))
    problem = Problem(Graph("two", ops, control=edges), devices(1, 1))
    assert searched(problem) == 6


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(threads: int) -> None:
    problem = Problem(layered(6, 6, 1), devices(1, 1, 2))
    one = solve(problem, "justification", evaluations=999, threads=1, seed=3)
    same = solve(problem, "justification", evaluations=999, threads=threads, seed=3)
    assert same.history[-1][1:] == one.history[-1][1:]
    assert np.array_equal(same.placement, one.placement)
    assert np.array_equal(same.order, one.order)


@pytest.mark.parametrize("seed", range(60))
def test_every_plan_is_verified(seed: int) -> None:
    problem = random_problem(seed)
    if justification.applies(problem):
        result = solve(problem, "justification", evaluations=40)
        result.schedule.verify(problem, allow_overflow=True)
        assert result.evaluations <= 40


def test_lists_leave_room_where_they_do_not_fit() -> None:
    problem = Problem(fork(12, size=4), devices(1, 1, memory=40))
    assert solve(problem, "justification", evaluations=400).feasible


@pytest.mark.parametrize("graph", [apart(1), chain(2)])
def test_the_smallest_problems_have_a_plan(graph: Graph) -> None:
    assert searched(Problem(graph, devices(1))) == len(graph.ops)


def test_bytes_that_fill_any_counter_do_not_overflow() -> None:
    """One tensor of the largest size has more consumers than copies of it would fit a counter."""
    few = fork(600)
    large = structs.replace(few.tensors[0], size=2**53)
    graph = Graph("large", few.ops, (large, *few.tensors[1:]))
    assert np.isfinite(searched(Problem(graph, devices(1, 1)), 20))


@pytest.mark.parametrize(
    ("objective", "rules"),
    [
        ("memory", "situate"),
        ("throughput", "situate"),
        ("time", "regal"),
        ("time", "dnn-partitioning"),
    ],
)
def test_only_overlapped_steps_are_made_shorter(objective: Any, rules: str) -> None:
    problem = Problem(chain(3), devices(1, 1), objective, RULES[rules])
    with pytest.raises(SituateError, match="transfers overlap with ops: use auto"):
        solve(problem, "justification", evaluations=10)


def test_ctrl_c_returns_what_was_found_by_then() -> None:
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 5:
            raise KeyboardInterrupt

    problem = Problem(layered(20, 20, 0), devices(1, 1, 2))
    result = solve(problem, "justification", time_limit=60, on_progress=interrupt)
    assert result.interrupted
    result.schedule.verify(problem)


def _started(
    problem: Problem, lower_bound: float = 0.0, outgrown: bool = False, **limits: Any
) -> Search:
    search = Search(problem, budget=Budget(**limits), threads=1, lower_bound=lower_bound)
    search.offer(np.zeros(problem.n, np.int32), np.array(problem.graph.order, np.int32))
    justification.offer_start(search, outgrown)
    return search


def test_a_start_takes_a_share_of_the_budget() -> None:
    search = _started(Problem(layered(10, 6, 1), devices(1, 1, 2)), evaluation_limit=1000)
    assert 50 < search.budget.evaluations <= 1000 * justification.START_SHARE + 10
    assert set(search.incumbent.placement.tolist()) == {0, 1, 2}


def test_beyond_one_device_a_leading_start_goes_on() -> None:
    """Up to so many lists of each chain; a start that lists far more in its share ends there."""
    problem = Problem(layered(10, 6, 1), devices(1, 1, 2))
    share, leading = justification.SHARE_BEYOND_ONE_DEVICE, justification.LEADING_SHARE
    few = _started(problem, outgrown=True, evaluation_limit=200).budget.evaluations
    assert 200 * share + 10 < few <= 200 * leading + 10
    many = _started(problem, outgrown=True, evaluation_limit=2000).budget.evaluations
    assert many <= 2000 * share + 10


def test_a_start_far_above_the_bound_is_not_offered() -> None:
    """Searches hardly leave the basin of a slow device that holds everything."""
    problem = Problem(layered(10, 6, 1), devices(1, 1, 2))
    one_device = np.zeros(problem.n, np.int32).tolist()
    bound = solve(problem, "heft").value / (2 * justification.MAX_OVER_BOUND)
    search = _started(problem, bound, evaluation_limit=1000)
    assert search.incumbent.placement.tolist() == one_device
    nearer = _started(problem, 4 * bound, evaluation_limit=1000)
    assert nearer.incumbent.placement.tolist() != one_device


def test_far_from_the_best_plan_it_ends_at_once() -> None:
    """Where all transfers are slow one device is best, and lists take several."""
    problem = Problem(layered(10, 6, 1, size=10**6), devices(1, 1, 2))
    assert _started(problem, evaluation_limit=1000).budget.evaluations <= 20


@pytest.mark.parametrize("rules", ["regal", "dnn-partitioning"])
def test_a_start_is_for_overlapped_transfers(rules: str) -> None:
    problem = Problem(layered(3, 3, 0), devices(1, 1), rules=RULES[rules])
    assert _started(problem, evaluation_limit=100).budget.evaluations < 5


def test_nothing_is_begun_without_time_for_it() -> None:
    problem = Problem(layered(3, 3, 0), devices(1, 1))
    search = Search(problem, budget=Budget(time_limit=1.0), threads=1)
    search.offer(np.zeros(problem.n, np.int32), np.array(problem.graph.order, np.int32))
    search.budget.record_offer(0.1)
    evaluations = search.budget.evaluations
    justification.offer_start(search)
    assert search.budget.evaluations == evaluations


def test_a_start_goes_on_until_a_list_fits() -> None:
    """The first lists overfill a device, because they do not foresee all bytes."""
    problem = Problem(layered(10, 6, 1, size=4, persistent=1), devices(1, 1, memory=66))
    search = _started(problem, evaluation_limit=2000)
    assert search.incumbent.feasible
    assert search.budget.evaluations > 2 * justification.CHAINS * justification.FIRST_LISTS


def test_a_start_ends_if_no_list_fits() -> None:
    problem = Problem(layered(10, 6, 1, size=4, persistent=1), devices(1, 1, memory=50))
    evaluations = _started(problem, evaluation_limit=2000).budget.evaluations
    assert evaluations <= justification.CHAINS * justification.TRIAL_LISTS + 10
