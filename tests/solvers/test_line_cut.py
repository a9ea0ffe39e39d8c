"""Segments of a line get their shares of the weight, and units go only where they may."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.line_cut import cut, live_bytes, on_devices, segment_of_places
from tests.solvers.families import apart, devices

LINE = np.arange(6, dtype=np.int32)


@pytest.mark.parametrize(
    ("weight", "share", "segments"),
    [
        ([1, 1, 1, 1, 1, 1], [1, 1], [0, 0, 0, 1, 1, 1]),
        ([1, 1, 1, 1, 1, 1], [2, 1], [0, 0, 0, 0, 1, 1]),
        ([5, 1, 1, 1, 1, 1], [1, 1], [0, 1, 1, 1, 1, 1]),
        ([1, 1, 1, 1, 1, 1], [0, 1], [1, 1, 1, 1, 1, 1]),
    ],
)
def test_a_segment_gets_its_share_of_the_weight(
    weight: list[float], share: list[float], segments: list[int]
) -> None:
    result = segment_of_places(LINE, np.array(weight, float), np.array(share, float))
    assert result.tolist() == segments


def test_units_without_weight_are_in_some_segment() -> None:
    assert set(segment_of_places(LINE, np.zeros(6), np.ones(2))) <= {0, 1}


def test_a_cut_follows_the_line_and_the_devices_in_their_turn() -> None:
    problem = Problem(apart(6), devices(1, 1))
    placement = cut(problem, [1, 0], LINE[::-1], np.ones(6), np.ones(2))
    assert placement.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_unit_that_may_not_go_there_is_where_it_may() -> None:
    ops = (Op("free", seconds={"*": 1.0}), Op("pinned", seconds={"*": 1.0}, device="d0"))
    problem = Problem(Graph("g", ops), devices(1, 1))
    assert on_devices(problem, np.array([1, 1])).tolist() == [1, 0]


def test_live_bytes_are_what_is_held_and_what_is_handed_on() -> None:
    """A resident tensor is among the persistent bytes of its producer, and counts once."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=10 * (1 - j)) for j in range(2))
    tensors = (Tensor("sent", 0, 3, (1,)), Tensor("kept", 0, 5, (1,), resident=True))
    problem = Problem(Graph("g", ops, tensors), devices(1, 1))
    assert live_bytes(problem).tolist() == [13, 0]
