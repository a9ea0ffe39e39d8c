"""Orders by walking a graph depth first."""

from __future__ import annotations

from situate.data.problem_arrays import post_order


# Orders by walking a graph depth first.
def test_an_op_comes_just_before_the_first_that_waits_for_it():
    before = [[], [], [0], [1, 2], []]
    assert post_order(range(5), before, rank=lambda op: -op).tolist() == [1, 0, 2, 3, 4]


def test_of_the_ops_that_one_waits_for_the_largest_comes_first():
    assert post_order(range(3), [[], [], [0, 1]], rank=lambda op: op).tolist() == [1, 0, 2]


def test_ops_that_nothing_waits_for_are_reached_in_the_given_order():
    assert post_order([2, 0, 1], [[], [], []], rank=lambda op: op).tolist() == [2, 0, 1]


def test_an_op_that_is_named_twice_comes_once():
    assert post_order(range(2), [[], [0, 0]], rank=lambda op: op).tolist() == [0, 1]
