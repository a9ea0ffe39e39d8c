"""A virtual clock: workers take as long as the steps that they measure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Floats
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.validation import check_items

STEPS = 11
"""Steps that a worker runs per placement, including one warm-up step (Post, section 4)."""


@dataclass(frozen=True)
class VirtualClock:
    """Durations of measurements by parallel workers.

    Attributes:
        workers: number per controller; each takes the next placement when it is free.
        setup: seconds before the first step of a placement.
        slowness: factors on the seconds of the workers, in turn; empty for 1.

    Raises:
        SituateError: no workers; a negative setup; a slowness that is not positive; a value that is
            not finite.
    """

    workers: int
    setup: float = 0.0
    slowness: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_items([self], VirtualClock, lambda _: "clock")
        if self.workers < 1:
            raise SituateError(f"clock: workers: must be at least 1, got {self.workers}")
        if not 0 <= self.setup < np.inf:
            raise SituateError(
                f"clock: setup: must be finite and not negative, got {self.setup!r} s"
            )
        for slowness in self.slowness:
            if not 0 < slowness < np.inf:
                raise SituateError(
                    f"clock: slowness: must be finite and positive, got {slowness!r}"
                )

    def seconds(self, measurements: Measurements, first: int = 0) -> float:
        """Seconds until a whole batch is measured; a failed placement takes only its setup.

        Args:
            first: number of the controller's first worker among all workers.
        """
        durations = self.setup + STEPS * measurements.times(0.0)
        free = np.zeros(self.workers)
        for duration in durations:
            worker = int(free.argmin())
            free[worker] += duration * self._slowness(first + worker)
        return float(free.max())

    def _slowness(self, worker: int) -> float:
        return self.slowness[worker % len(self.slowness)] if self.slowness else 1.0


def hours(clock: VirtualClock, batches: list[Measurements]) -> Floats:
    """(b,) hours until each of b batches is measured, one after the other."""
    return np.asarray(np.cumsum([clock.seconds(batch) for batch in batches]) / 3600)
