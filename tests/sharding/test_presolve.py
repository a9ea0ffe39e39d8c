"""Sharding problems in fewer ops."""

from __future__ import annotations

import numpy as np
import pytest

from situate.sharding import ShardingProblem, solve_sharding
from situate.sharding.presolve import reduce_problem
from tests.sharding.problems import least_cost, random_problem

NO = 10**18


def tied_problem(seed: int, ops: int = 7) -> ShardingProblem:
    """A random problem, some of whose ops must agree by permutations, around cycles too."""
    rng = np.random.default_rng(seed)
    plain = random_problem(seed, ops, most=3)
    size = 3
    costs = [rng.integers(0, 50, size) for _ in range(ops)]
    tables = []
    for _ in plain.edges:
        table = rng.integers(0, 50, (size, size))
        if rng.random() < 0.5:
            order = rng.permutation(size) if rng.random() < 0.3 else np.arange(size)
            tied = np.full((size, size), NO)
            tied[np.arange(size), order] = table[np.arange(size), order]
            table = tied
        tables.append(table)
    usages = [rng.integers(0, 20, size) for _ in range(ops)]
    return ShardingProblem(
        "tied", costs, usages, plain.intervals, plain.edges, tables, 2 * plain.limit
    )


# A reduced problem has the same optimum.
@pytest.mark.parametrize("seed", range(30))
def test_the_least_cost_stays(seed):
    problem = tied_problem(seed)
    least = least_cost(problem)
    plan = solve_sharding(problem, time_limit=None, rounds=60)
    assert plan.feasible == (least is not None)
    if least is not None:
        assert plan.bound <= least == plan.cost


# Ops that must agree are one group.
def test_ops_that_tables_tie_are_one_group():
    eye = np.where(np.eye(3) == 1, [[1], [2], [3]], NO)
    problem = ShardingProblem(
        "tied",
        [np.array([5, 1, 7]), np.array([10, 20, 30])],
        [np.array([1, 2, 3]), np.array([4, 5, 6])],
        np.array([[0, 2], [1, 3]]),
        [(0, 1)],
        [eye[[2, 0, 1]].astype(np.int64)],
        100,
    )
    reduction = reduce_problem(problem)
    assert [*reduction.group] == [0, 0]
    assert reduction.expand(np.array([0])) == (0, 2)


def test_a_strategy_that_stands_with_no_other_is_left_out():
    table = np.array([[NO, NO], [3, 4]])
    problem = ShardingProblem(
        "possible",
        [np.array([0, 9]), np.array([0, 0])],
        [np.array([0, 0]), np.array([1, 0])],
        np.array([[0, 1]] * 2),
        [(0, 1)],
        [table],
        1,
    )
    reduction = reduce_problem(problem)
    assert [strategies.tolist() for strategies in reduction.strategies] == [[1], [0, 1]]


def test_permutations_that_contradict_each_other_around_a_cycle_leave_what_agrees():
    swap = np.array([[NO, 0], [0, NO]])
    same = np.array([[0, NO], [NO, 0]])
    ops = [np.array([1, 2])] * 3
    problem = ShardingProblem(
        "cycle", ops, ops, np.array([[0, 1]] * 3), [(0, 1), (1, 2), (0, 2)], [same, same, swap], 99
    )
    plan = solve_sharding(problem, time_limit=None, rounds=5)
    assert not plan.feasible


# Tables that are sums are costs of the ops.
def test_a_table_of_sums_is_no_edge():
    table = np.add.outer([1, 2, 3], [10, 20])
    problem = ShardingProblem(
        "sums",
        [np.zeros(3, int), np.zeros(2, int)],
        [np.zeros(3, int), np.zeros(2, int)],
        np.array([[0, 1]] * 2),
        [(0, 1)],
        [table],
        0,
    )
    plan = solve_sharding(problem, time_limit=None, rounds=3)
    assert (plan.cost, plan.bound) == (11, 11)


# A strategy goes if another costs no more with any neighbour and uses no more memory; then its
# neighbour's may go, too.
def test_dominated_strategies_are_left_out():
    problem = ShardingProblem(
        "dominated",
        [np.array([5, 1, 0]), np.array([2, 0])],
        [np.array([1, 1, 2]), np.array([3, 3])],
        np.array([[0, 2], [1, 3]]),
        [(0, 1)],
        [np.array([[0, 4], [3, 6], [9, 1]])],
        5,
    )
    reduction = reduce_problem(problem)
    assert [own.tolist() for own in reduction.strategies] == [[1, 2], [0, 1]]
    slower = ShardingProblem(
        "dominated",
        [np.array([5, 1, 1]), np.array([2, 0])],
        problem.usages,
        problem.intervals,
        problem.edges,
        [np.array([[0, 4], [3, 6], [3, 9]])],
        5,
    )
    assert [own.tolist() for own in reduce_problem(slower).strategies] == [[1], [0]]


# A strategy goes if it exceeds the limit beside the least memory of all other ops, at any time.
def test_strategies_too_large_for_any_plan_are_left_out():
    problem = ShardingProblem(
        "large",
        [np.array([0, 9]), np.array([0, 9]), np.array([0, 9])],
        [np.array([6, 1]), np.array([5, 2]), np.array([3, 2])],
        np.array([[0, 2], [1, 3], [3, 4]]),
        [],
        [],
        7,
    )
    reduction = reduce_problem(problem)
    assert [own.tolist() for own in reduction.strategies] == [[1], [0, 1], [0, 1]]


def test_the_memory_of_a_group_counts_together():
    eye = np.where(np.eye(2) == 1, 0, NO)
    problem = ShardingProblem(
        "group",
        [np.array([0, 1]), np.array([0, 1])],
        [np.array([3, 1]), np.array([3, 1])],
        np.array([[0, 2], [1, 3]]),
        [(0, 1)],
        [eye],
        5,
    )
    assert [own.tolist() for own in reduce_problem(problem).strategies] == [[1], [1]]
