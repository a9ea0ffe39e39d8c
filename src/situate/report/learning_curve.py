"""Learning curves: the best step time and the mean of the last ones, against samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from situate.data.arrays import Floats

WINDOW = 60
"""Samples in a running mean: those between two cross-entropy minimisations of Post."""


def _none() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Curve:
    """The progress of a method, sample by sample; seconds, or the graph's own unit.

    Attributes:
        name: of the method.
        best: (n,) the best step time so far, infinite before the first valid sample.
        mean: (n,) mean of the valid samples among the last `WINDOW`, NaN where there are none;
            empty for a method that does not learn.
        failed: (n,) share of the last `WINDOW` samples that failed; empty as `mean` is.
    """

    name: str
    best: Floats
    mean: Floats = field(default_factory=_none)
    failed: Floats = field(default_factory=_none)

    @classmethod
    def of_samples(cls, name: str, seconds: Floats) -> Curve:
        """The curve of measured seconds (n,), infinite for failed samples."""
        is_valid = np.isfinite(seconds)
        count = _sums(is_valid.astype(np.float64))
        total = _sums(np.where(is_valid, seconds, 0.0))
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
    # Zeros ahead of the first value, so that its window is full; the window of zeros alone is left
    # out.
    padded = np.concatenate((np.zeros(WINDOW), values))
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[1:]
    return np.asarray(windows.sum(axis=1))


def learning_figures(seconds: Floats) -> dict[str, float | int | None]:
    """Figures of a method's samples, from their seconds (n,); None where no sample is valid."""
    is_valid = np.isfinite(seconds)
    return {
        "count": len(seconds),
        "failures": int((~is_valid).sum()),
        "best": _smallest(seconds[is_valid]),
        f"first_{WINDOW}_best": _smallest(seconds[:WINDOW][is_valid[:WINDOW]]),
        f"last_{WINDOW}_mean": _mean(seconds[-WINDOW:][is_valid[-WINDOW:]]),
    }


def _smallest(seconds: Floats) -> float | None:
    return float(seconds.min()) if seconds.size else None


def _mean(seconds: Floats) -> float | None:
    return float(seconds.mean()) if seconds.size else None
