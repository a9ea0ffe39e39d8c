"""The steps of one measurement: the papers' rules, and repetition until the mean is precise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from situate.data.arrays import Floats
from situate.evaluators.measurements import Evaluator

MIN_STEPS, MAX_STEPS = 3, 10
"""Fewest and most steps of a measurement."""

SHORT_SECONDS = 0.2
"""Total seconds up to which more than `MAX_STEPS` steps may run."""

TARGET_ERROR = 0.03
"""Standard error, as a fraction of the mean, at which repetition stops."""


@dataclass(frozen=True)
class Steps:
    """A rule for the steps of one measurement: the smallest mean of `window` consecutive ones.

    Attributes:
        dropped: steps that run first and are not timed.
        timed: timed steps after them.
        window: timed steps in a mean; equal to `timed` for a single mean.
    """

    dropped: int = 1
    timed: int = 10
    window: int = 10

    def seconds(self, times: Floats) -> Floats:
        """(k,) measurements from step times (k, steps); there may be fewer steps than `timed`."""
        window = min(self.window, times.shape[1])
        # (k, steps - window + 1, window): every run of consecutive steps, as a view.
        runs = np.lib.stride_tricks.sliding_window_view(times, window, axis=1)
        return np.asarray(runs.mean(axis=2).min(axis=1))

    def __str__(self) -> str:
        mean = "mean" if self.window == self.timed else f"least mean of {self.window} in a row"
        return f"{mean} of {self.timed} steps after {self.dropped}"


@runtime_checkable
class CountsSteps(Evaluator, Protocol):
    """An evaluator that can measure by a rule of steps."""

    def by(self, steps: Steps) -> Evaluator:
        """The same machine, whose measurements aggregate these steps."""
        ...


def has_enough_steps(
    seconds: Sequence[float], seconds_left: float, timed: int | None = None
) -> bool:
    """True if no further step is needed after steps of these `seconds`.

    Args:
        seconds_left: remaining time. One step runs even if there is none.
        timed: number of steps; None for as many as a precise mean needs.
    """
    if not seconds:
        return False
    if timed is not None:
        return len(seconds) >= timed or max(seconds) > seconds_left
    # Stop at a precise mean, after many steps, or before a step that would end too late.
    exact = len(seconds) >= MIN_STEPS and standard_error(seconds) <= TARGET_ERROR
    long = len(seconds) >= MAX_STEPS and sum(seconds) >= SHORT_SECONDS
    return exact or long or max(seconds) > seconds_left


def repetition_text(steps: Steps | None) -> str:
    """The description in a study of how often a step is repeated."""
    return str(steps or f"{MIN_STEPS} to {MAX_STEPS} steps, error {TARGET_ERROR}")


def standard_error(seconds: Sequence[float]) -> float:
    """The standard error of the mean, as a fraction of it; NaN for fewer than two steps."""
    if len(seconds) < 2:
        return math.nan
    return statistics.stdev(seconds) / math.sqrt(len(seconds)) / statistics.fmean(seconds)
