"""Rows that are alike."""

from __future__ import annotations

import numpy as np
import pytest

from situate.bounds.alike import distinct, equal_rows


def test_sets_of_rows_come_in_the_order_of_the_rows() -> None:
    first, which = equal_rows(np.array([[3, 1], [2, 1], [3, 1]]))
    assert first.tolist() == [0, 1]
    assert which.tolist() == [0, 1, 0]


@pytest.mark.parametrize("shape", [(5, 300), (300, 2), (1, 4)])
def test_distinct_rows_are_those_of_numpy(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(0).integers(-1, 2, shape) * 0.5
    expected, which = np.unique(rows, axis=0, return_inverse=True)
    assert np.array_equal(distinct(rows)[0], expected)
    assert np.array_equal(distinct(rows)[1], which.ravel())
