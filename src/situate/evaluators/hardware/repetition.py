"""Repetition of a step, after a first one that is dropped, and the time that it counts as."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from situate.runtime.measure import STEPS

Settings = Literal["paper", "tuned"]

FEWEST_STEPS, MOST_STEPS = 3, 10
"""Steps of a measurement."""

SHORT_SECONDS = 0.2
"""Seconds within which more than `MOST_STEPS` steps are no trouble."""

TARGET_ERROR = 0.03
"""Standard error, as a fraction of the mean, that is small enough to stop at."""


def enough(seconds: Sequence[float], left: float) -> bool:
    """True if no more steps are needed after those that took so long.

    Args:
        left: seconds that there are for more. One step is run however few they are.
    """
    if not seconds:
        return False
    exact = len(seconds) >= FEWEST_STEPS and standard_error(seconds) <= TARGET_ERROR
    long = len(seconds) >= MOST_STEPS and sum(seconds) >= SHORT_SECONDS
    return exact or long or max(seconds) > left


def _all_ten(seconds: Sequence[float], left: float) -> bool:
    """True after ten steps, however long they take."""
    return len(seconds) >= STEPS - 1


def standard_error(seconds: Sequence[float]) -> float:
    """The standard error of the mean, as a fraction of it; NaN of fewer than two."""
    if len(seconds) < 2:
        return math.nan
    return statistics.stdev(seconds) / math.sqrt(len(seconds)) / statistics.fmean(seconds)


@dataclass(frozen=True)
class Repetition:
    """Steps that are run, and what they say together.

    Attributes:
        text: what a study says of it.
        enough: True after steps that took so long, with so many seconds left for more.
        time: the time that they count as.
    """

    text: str
    enough: Callable[[Sequence[float], float], bool]
    time: Callable[[Sequence[float]], float]


REPETITIONS: dict[Settings, Repetition] = {
    "paper": Repetition(f"mean of {STEPS - 1} steps", _all_ten, statistics.fmean),
    "tuned": Repetition(
        f"{FEWEST_STEPS} to {MOST_STEPS} steps, error {TARGET_ERROR}", enough, statistics.median
    ),
}
"""By settings: as in Post, section 4, where of eleven steps the first is dropped; or until the
median is known well enough."""
