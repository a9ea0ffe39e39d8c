"""Repetition of a step until its mean is known well enough, or as often as was asked for."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from situate.evaluators.steps import Steps

FEWEST_STEPS, MOST_STEPS = 3, 10
"""Steps of a measurement."""

SHORT_SECONDS = 0.2
"""Seconds within which more than `MOST_STEPS` steps are no trouble."""

TARGET_ERROR = 0.03
"""Standard error, as a fraction of the mean, that is small enough to stop at."""


def enough(seconds: Sequence[float], left: float, timed: int | None = None) -> bool:
    """True if no more steps are needed after those that took so long.

    Args:
        left: seconds that there are for more. One step is run however few they are.
        timed: how many are wanted; None for as many as make the mean known well enough.
    """
    if not seconds:
        return False
    if timed is not None:
        return len(seconds) >= timed or max(seconds) > left
    exact = len(seconds) >= FEWEST_STEPS and standard_error(seconds) <= TARGET_ERROR
    long = len(seconds) >= MOST_STEPS and sum(seconds) >= SHORT_SECONDS
    return exact or long or max(seconds) > left


def repetition_text(steps: Steps | None) -> str:
    """The words of a study for how often a step is repeated."""
    return str(steps or f"{FEWEST_STEPS} to {MOST_STEPS} steps, error {TARGET_ERROR}")


def standard_error(seconds: Sequence[float]) -> float:
    """The standard error of the mean, as a fraction of it; NaN of fewer than two."""
    if len(seconds) < 2:
        return math.nan
    return statistics.stdev(seconds) / math.sqrt(len(seconds)) / statistics.fmean(seconds)
