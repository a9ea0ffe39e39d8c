"""One time out of several measurements of the same placement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WINDOW = 5
"""Measurements that a moving average goes over."""


def least_averages(times: NDArray[np.float64], repeats: int) -> NDArray[np.float64]:
    """The smallest moving average of each placement's measurements (ColocRL).

    Args:
        times: (k,) seconds; each placement has `repeats` in a row, the last perhaps fewer.
        repeats: at least 1.

    Returns:
        (ceil(k / repeats),)
    """
    if repeats == 1:
        return times
    return np.array([_least(times[i : i + repeats]) for i in range(0, len(times), repeats)])


def _least(times: NDArray[np.float64]) -> float:
    window = min(WINDOW, len(times))
    # (repeats - window + 1,) sums over every run of `window` measurements.
    sums = np.convolve(times, np.ones(window), "valid")
    return float(sums.min()) / window
