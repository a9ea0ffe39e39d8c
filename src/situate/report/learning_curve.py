"""Learning curves: the best step time and the mean of the last ones, against samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from situate.data.arrays import Floats

WINDOW = 60
"""Samples that a mean is taken over: those between two cross-entropy minimisations of Post."""


def _none() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Curve:
    """The progress of a method, sample by sample; seconds, or the graph's own unit.

    Attributes:
        name: of the method.
        best: (n,) the best step time so far, infinite before the first step that ran.
        mean: (n,) mean of those that ran among the last `WINDOW` samples, NaN where none did; empty
            for a method that does not learn.
        failed: (n,) share of the last `WINDOW` samples that failed; empty as `mean` is.
    """

    name: str
    best: Floats
    mean: Floats = field(default_factory=_none)
    failed: Floats = field(default_factory=_none)

    @classmethod
    def of_samples(cls, name: str, seconds: Floats) -> Curve:
        """From seconds (n,) as they were measured, infinite for what failed."""
        ran = np.isfinite(seconds)
        count = _sums(ran.astype(np.float64))
        total = _sums(np.where(ran, seconds, 0.0))
        mean = np.divide(total, count, out=np.full(len(seconds), np.nan), where=count > 0)
        window = np.minimum(np.arange(1, len(seconds) + 1), WINDOW)
        return cls(name, np.minimum.accumulate(seconds), mean, 1 - count / window)

    @classmethod
    def of_improvements(
        cls, name: str, samples: int, improvements: Sequence[tuple[int, float]]
    ) -> Curve:
        """From (samples, seconds) at each improvement, in order."""
        best = np.full(samples, np.inf)
        for after, seconds in improvements:
            best[max(after, 1) - 1 :] = seconds
        return cls(name, best)


def _sums(values: Floats) -> Floats:
    """(n,) the sum of each value and the `WINDOW` - 1 before it."""
    padded = np.concatenate((np.zeros(WINDOW), values))
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[1:]
    return np.asarray(windows.sum(axis=1))


def learning_figures(seconds: Floats) -> dict[str, float | int | None]:
    """Figures of the placements that a method was told of, from their seconds (n,); None for the
    times of steps of which none ran."""
    ran = np.isfinite(seconds)
    return {
        "count": len(seconds),
        "failures": int((~ran).sum()),
        "best": _smallest(seconds[ran]),
        f"first_{WINDOW}_best": _smallest(seconds[:WINDOW][ran[:WINDOW]]),
        f"last_{WINDOW}_mean": _mean(seconds[-WINDOW:][ran[-WINDOW:]]),
    }


def _smallest(seconds: Floats) -> float | None:
    return float(seconds.min()) if seconds.size else None


def _mean(seconds: Floats) -> float | None:
    return float(seconds.mean()) if seconds.size else None
