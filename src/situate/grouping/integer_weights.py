"""Weights as integers, for partitioners that know no others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LARGEST_SUM = 2**30
"""Largest sum of integer weights: the partitioners may count in 32 bits, with a sign."""


def as_integers(
    values: NDArray[np.float64] | NDArray[np.int64], most: int = LARGEST_SUM
) -> NDArray[np.int64]:
    """Integers in proportion to values of at least 0.

    Each is at least 1. Their sum is at most `most`, or the number of values if that is larger. All
    are 1 if all values are 0.
    """
    largest = values.max(initial=0.0)
    if largest <= 0:
        return np.ones(len(values), np.int64)
    # Divided by the largest first, so that the sum cannot overflow. One of each value is set aside
    # as its lower limit of 1; only the rest of `most` is dealt out in proportion.
    share = values / largest
    room = max(0, most - len(values))
    return np.asarray(np.maximum(1, np.floor(share * (room / share.sum()))), np.int64)
