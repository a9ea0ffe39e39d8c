"""Strategies of least cost, and bounds of it."""

from __future__ import annotations

import math
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from situate._core.sharding import ShardingSolver
from situate.errors import SituateError
from situate.sharding import ShardingProblem, solve, solve_sharding
from situate.sharding.presolve import reduce_problem
from tests.sharding.problems import least_cost, random_problem


def solved(problem, rounds=60, **options):
    return solve_sharding(problem, time_limit=None, rounds=rounds, **options)


def pigeons(ops, choices):
    """Ops that all want the same few strategies, none of which may be taken twice for free."""
    edges = [(a, b) for a in range(ops) for b in range(a + 1, ops)]
    return ShardingProblem(
        "pigeons",
        [np.zeros(choices, int)] * ops,
        [np.zeros(choices, int)] * ops,
        np.array([[0, 1]] * ops),
        edges,
        [np.eye(choices, dtype=int)] * len(edges),
        0,
    )


# Trying everything judges plans and bounds.
@pytest.mark.parametrize("tight", [0.4, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_small_problems_are_solved(seed, tight):
    problem = random_problem(seed, tight=tight)
    least = least_cost(problem)
    plan = solved(problem, rounds=200)
    if least is None:
        assert not plan.feasible
        assert plan.gap == math.inf
    else:
        assert plan.bound == least == plan.cost
        assert plan.peak == problem.peak(plan.strategies) <= problem.limit


@pytest.mark.parametrize("seed", range(10))
def test_a_bound_holds_after_every_round(seed):
    problem = random_problem(seed, tight=0.6)
    least = least_cost(problem)
    bounds = [solved(problem, rounds).bound for rounds in (1, 2, 3, 5, 8, 13)]
    assert bounds == sorted(bounds)
    assert least is None or bounds[-1] <= least


# Messages alone give a bound of zero here, since half of either strategy costs nothing.
def test_branching_proves_costs_that_messages_cannot():
    plan = solved(pigeons(ops=5, choices=2), rounds=400)
    assert (plan.cost, plan.bound) == (4, 4)
    assert plan.rounds < 400


# Two thirds of a knapsack are worth nothing, but to a relaxation.
def test_branching_proves_what_memory_leaves_over():
    problem = ShardingProblem(
        "knapsack",
        [np.array([0, gain]) for gain in (70, 71, 72, 73, 74, 75, 76)],
        [np.array([30, 0])] * 7,
        np.array([[0, 1]] * 7),
        [],
        [],
        100,
    )
    plan = solved(problem, rounds=400)
    assert plan.cost == plan.bound == 70 + 71 + 72 + 73


# Trees without a limit of memory are where the relaxation is exact.
def test_a_tree_is_proved_optimal():
    rng = np.random.default_rng(1)
    ops = 300
    edges = [(int(rng.integers(0, b)), b) for b in range(1, ops)]
    problem = ShardingProblem(
        "tree",
        [rng.integers(0, 100, 5) for _ in range(ops)],
        [np.zeros(5, int)] * ops,
        np.array([[0, 1]] * ops),
        edges,
        [rng.integers(0, 100, (5, 5)) for _ in edges],
        0,
    )
    plan = solved(problem, rounds=500)
    assert plan.cost == plan.bound
    assert plan.gap == 0
    assert plan.rounds < 500


# Costs that do not depend on a choice, and ops without any, change nothing but the sum.
def test_edges_of_one_number_change_nothing_but_the_sum():
    problem = ShardingProblem(
        "constant",
        [np.array([0, 1]), np.array([0, 1]), np.array([4])],
        [np.zeros(2, int), np.zeros(2, int), np.zeros(1, int)],
        np.array([[0, 1]] * 3),
        [(0, 1), (0, 2), (1, 2)],
        [np.array([[7, 7], [0, 0]]), np.array([[5], [3]]), np.array([[2], [2]])],
        0,
    )
    plan = solved(problem)
    assert (plan.strategies, plan.cost, plan.bound) == ((1, 0, 0), 10, 10)


def test_negative_costs_are_sums_as_well():
    problem = ShardingProblem(
        "negative", [np.array([-5, 3])], [np.array([9, 0])], np.array([[0, 1]]), [], [], 0
    )
    assert solved(problem).cost == 3


# The seed and the rounds fix the plan.
def test_threads_change_nothing():
    problem = random_problem(3, ops=60, most=6, tight=0.5)
    plans = [solved(problem, 150, threads=threads) for threads in (1, 2, 2)]
    assert len({(plan.strategies, plan.cost, plan.bound) for plan in plans}) == 1


def test_a_time_limit_ends_the_search(monkeypatch):
    clock = SimpleNamespace(monotonic=count().__next__)  # a second passes at each look
    monkeypatch.setattr(solve, "time", clock)
    problem = random_problem(3, ops=60, most=6, tight=0.5)
    plan = solve_sharding(problem, time_limit=2.5)
    assert plan.rounds == 2
    assert plan.cost == problem.cost(plan.strategies)


def test_a_round_without_time_changes_nothing():
    solver = ShardingSolver(reduce_problem(random_problem(3, ops=60)).arrays, seed=0)
    strategies = solver.strategies()
    solver.round(two_threads=True, seconds=0)
    assert [*solver.strategies()] == [*strategies]
    assert solver.bound == -math.inf


def test_no_round_at_all_gives_strategies_of_least_memory():
    problem = random_problem(3, tight=0.3)
    plan = solved(problem, rounds=0)
    assert plan.cost == problem.cost(plan.strategies)
    assert plan.peak <= problem.peak([int(usage.argmax()) for usage in problem.usages])


@pytest.mark.parametrize(
    "limits", [{"time_limit": None}, {"time_limit": -1.0}, {"time_limit": None, "rounds": -1}]
)
def test_limits_that_end_nothing_are_refused(limits):
    with pytest.raises(SituateError, match="time_limit"):
        solve_sharding(random_problem(0), **limits)
