"""A machine whose measurements take a known time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements


@dataclass
class Busy:
    """A machine that takes so long for a sample: by computing, or by waiting."""

    seconds: float
    computes: bool

    at_once = 1
    finalists = 0

    @property
    def name(self) -> str:
        """Its settings."""
        return f"busy {self.seconds!r} {self.computes}"

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """The seconds that it takes."""
        for _ in range(len(placements)):
            if self.computes:
                until = time.process_time() + self.seconds
                while time.process_time() < until:
                    pass
            else:
                time.sleep(self.seconds)
        return Measurements(
            np.full(len(placements), self.seconds), np.zeros(len(placements), np.uint8)
        )
