"""The steps that one measurement is of, as papers count them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
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


MIN_STEPS, MAX_STEPS = 3, 10
"""Steps of a measurement."""

SHORT_SECONDS = 0.2
"""Seconds within which more than `MAX_STEPS` steps are no trouble."""

TARGET_ERROR = 0.03
"""Standard error, as a fraction of the mean, that is small enough to stop at."""


def has_enough_steps(
    seconds: Sequence[float], seconds_left: float, timed: int | None = None
) -> bool:
    """True if no more steps are needed after those that took so long.

    Args:
        seconds_left: seconds that there are for more. One step is run however few they are.
        timed: how many are wanted; None for as many as make the mean known well enough.
    """
    if not seconds:
        return False
    if timed is not None:
        return len(seconds) >= timed or max(seconds) > seconds_left
    exact = len(seconds) >= MIN_STEPS and standard_error(seconds) <= TARGET_ERROR
    long = len(seconds) >= MAX_STEPS and sum(seconds) >= SHORT_SECONDS
    return exact or long or max(seconds) > seconds_left


def repetition_text(steps: Steps | None) -> str:
    """The words of a study for how often a step is repeated."""
    return str(steps or f"{MIN_STEPS} to {MAX_STEPS} steps, error {TARGET_ERROR}")


def standard_error(seconds: Sequence[float]) -> float:
    """The standard error of the mean, as a fraction of it; NaN of fewer than two."""
    if len(seconds) < 2:
        return math.nan
    return statistics.stdev(seconds) / math.sqrt(len(seconds)) / statistics.fmean(seconds)
