"""Bars of a timeline: one for each op, or one for several ops where there are too many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.schedule.schedule import Schedule

MAX_BARS = 400_000
"""Most bars of a timeline that a browser draws fluidly."""

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bars:
    """Groups of consecutive ops of one device.

    Attributes:
        of: (n,) the bar of each op.
        first: (bars,) the first op of each bar.
        count: (bars,) ops in each bar.
    """

    of: Indices
    first: Indices
    count: Indices

    @property
    def aggregated(self) -> bool:
        """True if some bar stands for several ops."""
        return len(self.first) < len(self.of)

    def totals(self, values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """(bars,) sums over the ops of each bar."""
        return np.asarray(np.bincount(self.of, values, len(self.first)), np.float64)

    def span(self, schedule: Schedule) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(bars,) the first start and the last end of each bar's ops."""
        if not self.aggregated:
            return schedule.start, schedule.end
        # A bar's ops are in the order of their starts.
        start, end = schedule.start[self.first], np.zeros(len(self.first))
        np.maximum.at(end, self.of, schedule.end)
        return start, end


def bars_of(problem: Problem, schedule: Schedule, classes: Indices, limit: int = MAX_BARS) -> Bars:
    """The bars of a schedule.

    Args:
        classes: (n,) colour class of each op; a bar has ops of one class.
        limit: most bars, unless classes change more often than that.
    """
    n = problem.n
    if n <= limit:
        return Bars(np.arange(n), np.arange(n), np.ones(n, np.int64))
    order = np.lexsort((schedule.start, schedule.placement))
    changes = _changes(schedule.placement[order]) | _changes(classes[order])
    run = np.cumsum(changes) - 1
    # The number of each op in its run.
    place = np.arange(n) - np.flatnonzero(changes)[run]
    size = -(-n // limit)
    while (begins := changes | (place % size == 0)).sum() > limit and size < n:
        size *= 2
    of = np.empty(n, np.int64)
    of[order] = np.cumsum(begins) - 1
    return Bars(of, order[begins], np.bincount(of))


def _changes(values: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.bool_]:
    """(n,) True where a value differs from the one before it, and for the first."""
    return np.append(True, values[1:] != values[:-1])
