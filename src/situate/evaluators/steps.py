"""The steps that one measurement is of, as papers count them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from situate.data.arrays import Floats
from situate.evaluators.measurements import Evaluator


@dataclass(frozen=True)
class Steps:
    """A rule that makes one measurement of several steps: the least mean of so many in a row.

    Attributes:
        dropped: steps that are run first and not timed.
        timed: steps after them.
        window: timed steps that a mean is of; all of them for one mean.
    """

    dropped: int = 1
    timed: int = 10
    window: int = 10

    def seconds(self, times: Floats) -> Floats:
        """(k,) the measurements of k placements from the times of their steps (k, steps), of which
        there may be fewer than `timed`."""
        window = min(self.window, times.shape[1])
        runs = np.lib.stride_tricks.sliding_window_view(times, window, axis=1)
        return np.asarray(runs.mean(axis=2).min(axis=1))

    def __str__(self) -> str:
        mean = "mean" if self.window == self.timed else f"least mean of {self.window} in a row"
        return f"{mean} of {self.timed} steps after {self.dropped}"


@runtime_checkable
class CountsSteps(Evaluator, Protocol):
    """An evaluator that can measure by a rule of steps."""

    def by(self, steps: Steps) -> Evaluator:
        """The same machine, each of whose measurements is of these steps."""
        ...
