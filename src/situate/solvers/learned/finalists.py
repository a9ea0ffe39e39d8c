"""The choice among finalists, the fastest placements of a learner, by measuring them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats, Placement, Placements

SAMPLES_EACH = 8
"""Samples per finalist. Each finalist is measured again four to five times on average."""

LEAST_ROUND_SECONDS, FAILED_SECONDS = 1e-9, 1e100
"""Least seconds of a round of finalists, and the seconds of a failed measurement."""

Measure = Callable[[int, Placements], Floats]
"""Seconds (k,) of placements (k, n), the measurements of finalists from a number on."""


def finalists(
    times: Mapping[bytes, Sequence[float]], most: int, samples: int, has_start: bool
) -> Placements:
    """(k, n) finalists: the fastest placements, at most one per `SAMPLES_EACH` samples.

    A machine may be slow for a while. So all placements on one device are finalists whatever their
    times, and so is the first placement that ran if there was a plan to start with.

    Args:
        times: seconds of each placement, as the bytes of 32-bit integers, in the order of samples.
        most: largest number of finalists chosen by their times.
        samples: number of samples in all.
        has_start: True if there was a plan to start with.
    """
    ranked = sorted(times, key=lambda placement: float(np.median(times[placement])))
    fastest = ranked[: min(most, -(-samples // SAMPLES_EACH))]
    simple = [placement for placement in times if _on_one_device(placement)]
    first = list(times)[: int(has_start)]
    # A placement that qualifies twice is measured once.
    distinct = dict.fromkeys([*fastest, *first, *simple])
    return np.array([np.frombuffer(placement, np.int32) for placement in distinct])


def fastest(finalists: Placements, measure: Measure) -> tuple[Placement, float]:
    """The fastest finalist and its median seconds, by sequential halving (Karnin, Koren and Somekh,
    2013).

    All finalists are measured in turn, then the better half twice as often, until one of two is
    chosen. Only new measurements decide, because the minimum of noisy times is biased.
    """
    most, count = len(finalists), 0
    seconds = np.empty((most, 0))
    while True:
        for _ in range(most // len(finalists)):
            times = measure(count, finalists)
            count += len(finalists)
            # (finalists, rounds): one more column per round.
            seconds = np.column_stack((seconds, times))
        # Half of the finalists get twice as many rounds, so the stages cost about the same.
        ranked = np.argsort(_paces(seconds), kind="stable")
        if len(finalists) <= 2:
            break
        ranked = ranked[: (len(finalists) + 1) // 2]
        finalists, seconds = finalists[ranked], seconds[ranked]
    best = ranked[0]
    return finalists[best], float(np.median(seconds[best]))


def _paces(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k,) median over rounds of a placement's seconds relative to the median of its round;
    infinite if it ever failed.

    Times are relative to their round because a machine may be slow for a while.

    Args:
        seconds: (k, rounds) of the placements.
    """
    # Failures become finite, because inf / inf is NaN.
    finite = np.minimum(seconds, FAILED_SECONDS)
    rounds = np.maximum(np.median(finite, axis=0), LEAST_ROUND_SECONDS)
    paces = np.median(finite / rounds, axis=1)
    return np.where(np.isfinite(seconds).all(axis=1), paces, np.inf)


def _on_one_device(placement: bytes) -> bool:
    devices = np.frombuffer(placement, np.int32)
    return bool((devices == devices[0]).all())
