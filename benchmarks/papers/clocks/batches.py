"""Samples in the batches that workers measure, and the hours that these take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.evaluators.measurements import Measurements
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock, hours


def batches(samples: NDArray[np.float64], size: int) -> list[Measurements]:
    """Samples (s,), infinite where they failed, in batches of so many."""
    return [
        Measurements(part, np.where(np.isfinite(part), 0, 1).astype(np.uint8))
        for part in np.split(samples, range(size, len(samples), size))
    ]


def ends(samples: NDArray[np.float64], clock: VirtualClock) -> Floats:
    """(s,) hours by the clock until each sample's batch is measured, a batch of one sample for each
    worker after the other."""
    each = hours(clock, batches(samples, clock.workers))
    return np.repeat(each, clock.workers)[: len(samples)]


def until_best(samples: NDArray[np.float64], clock: VirtualClock) -> float:
    """Hours until the best sample's batch is measured."""
    return float(ends(samples, clock)[int(samples.argmin())])
