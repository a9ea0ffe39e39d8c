"""The batches that workers measure, and the hours that these take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.evaluators.measurements import Measurements
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock, hours

Batches = Sequence[Measurements]
"""The batches that a learner was told of, in order."""


def at_once(batches: Batches, workers: int) -> list[Measurements]:
    """Batches of at least as many placements as there are workers, but for the last.

    Of a learner that is told of fewer, as Spotlight is of each, several are put together: the hours
    are those of workers that all have a placement.
    """
    updates: list[Measurements] = []
    for batch in batches:
        if updates and len(updates[-1]) < workers:
            updates[-1] = updates[-1].then(batch)
        else:
            updates.append(batch)
    return updates


def ends(batches: Batches, clock: VirtualClock) -> Floats:
    """(s,) hours by the clock until all is measured that each sample is measured with."""
    together = at_once(batches, clock.workers)
    return np.repeat(hours(clock, together), [len(batch) for batch in together])


def until_best(samples: NDArray[np.float64], batches: Batches, clock: VirtualClock) -> float:
    """Hours until the best of the samples is measured."""
    return float(ends(batches, clock)[int(samples.argmin())])
