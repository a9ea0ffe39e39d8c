"""Weights as integers."""

from __future__ import annotations

import numpy as np
import pytest

from situate.grouping.integer_weights import LARGEST_SUM, as_integers


def test_whole_numbers_keep_proportions_and_their_sum() -> None:
    values = np.array([0.0, 1.0, 2.0, 4.0])
    weights = as_integers(values)
    assert weights[0] == 1
    assert weights[1:] / weights[1] == pytest.approx([1, 2, 4], rel=1e-6)
    assert LARGEST_SUM - 8 < weights.sum() <= LARGEST_SUM
    assert as_integers(np.full(3, 2**62)).sum() <= LARGEST_SUM
    assert as_integers(np.array([1e300, 1e-300])).tolist() == [LARGEST_SUM - 2, 1]
    assert as_integers(np.zeros(3)).tolist() == [1, 1, 1]
    assert as_integers(np.ones(5), most=3).tolist() == [1] * 5
