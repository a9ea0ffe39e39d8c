"""Orders by walking a graph depth first."""

from __future__ import annotations

import numpy as np
import pytest

from situate import _core
from situate.data.problem_arrays import post_order


def walked(n: int, *edges: tuple[int, int], order: list[int] | None = None) -> list[int]:
    """The order of n ops with these edges; of an op's predecessors, the largest comes first."""
    ends = np.array(edges, np.int32).reshape(-1, 2)
    ops = np.array(range(n) if order is None else order, np.int32)
    return post_order(ops, ends[:, 0], ends[:, 1], np.arange(n)).tolist()


# Orders by walking a graph depth first.
def test_an_op_comes_just_before_the_first_that_waits_for_it() -> None:
    assert walked(5, (0, 2), (1, 3), (2, 3)) == [0, 2, 1, 3, 4]


def test_of_the_ops_that_one_waits_for_the_largest_comes_first() -> None:
    assert walked(3, (0, 2), (1, 2)) == [1, 0, 2]


def test_ops_that_nothing_waits_for_are_reached_in_the_given_order() -> None:
    assert walked(3, order=[2, 0, 1]) == [2, 0, 1]


def test_an_op_that_is_named_twice_comes_once() -> None:
    assert walked(2, (0, 1), (0, 1)) == [0, 1]


@pytest.mark.parametrize(
    ("start", "before"), [([0], []), ([0, 1, 2], [0, 2]), ([0, 2, 1], [0]), ([0, 0, 0], [1])]
)
def test_the_core_refuses_edges_that_are_none(start: list[int], before: list[int]) -> None:
    with pytest.raises(ValueError, match=r"start|ops"):
        _core.problem.depth_first_order(
            np.arange(2, dtype=np.int32), np.array(start, np.int64), np.array(before, np.int32)
        )
