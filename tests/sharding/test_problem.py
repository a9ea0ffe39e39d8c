"""Costs and peaks of strategies."""

from __future__ import annotations

import numpy as np
import pytest

from situate.errors import SituateError
from situate.sharding import ShardingProblem


@pytest.fixture
def pair():
    """Two ops of two strategies each, which are in memory together from 1 to 2."""
    return ShardingProblem(
        "pair",
        [np.array([1, 2]), np.array([10, 20])],
        [np.array([5, 6]), np.array([7, 8])],
        np.array([[0, 2], [1, 3]]),
        [(0, 1)],
        [np.array([[100, 200], [300, 10**18]])],
        12,
    )


# A cost is that of all ops and edges.
def test_costs_of_ops_and_edges_add_up(pair):
    assert pair.cost([0, 1]) == 1 + 20 + 200


def test_sums_beyond_64_bits_are_exact():
    forbidden = [np.array([2**62])] * 3
    usages = [np.array([0])] * 3
    problem = ShardingProblem("large", forbidden, usages, np.zeros((3, 2), int), [], [], 0)
    assert problem.cost([0, 0, 0]) == 3 * 2**62


# Memory is that of strategies at the same time.
def test_a_peak_is_of_ops_in_memory_together(pair):
    assert pair.peak([0, 1]) == 5 + 8


def test_ops_that_end_as_others_begin_are_never_in_memory_together():
    one = np.array([5])
    problem = ShardingProblem(
        "after", [one, one], [one, one], np.array([[0, 1], [1, 2]]), [], [], 5
    )
    assert problem.peak([0, 0]) == 5


def test_an_empty_interval_needs_no_memory():
    one = np.array([5])
    problem = ShardingProblem("empty", [one], [one], np.array([[3, 3]]), [], [], 0)
    assert problem.peak([0]) == 0


# Strategies must be those of the problem.
@pytest.mark.parametrize(
    ("strategies", "message"),
    [([0], "1 strategies for 2 ops"), ([0, 2], "op 1 has no strategy 2"), ([-1, 0], "op 0")],
)
def test_other_strategies_are_refused(pair, strategies, message):
    with pytest.raises(SituateError, match=message):
        pair.cost(strategies)
