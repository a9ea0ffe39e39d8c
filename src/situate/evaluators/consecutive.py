"""Runs of samples whose numbers follow one another, as evaluators take them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def consecutive(numbers: NDArray[np.int64], most: int | None) -> Iterator[NDArray[np.int64]]:
    """Indices into ascending `numbers` (k,), in runs in which each is one more than the last; none
    of more than `most`."""
    indices = np.arange(len(numbers))
    for run in np.split(indices, np.flatnonzero(np.diff(numbers) != 1) + 1):
        size = most or max(1, len(run))
        yield from (run[begin : begin + size] for begin in range(0, len(run), size))
