"""The place of a study where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements, Origin
from situate.study.checkpoint import State
from situate.study.samples import Of

StoredSamples = tuple[NDArray[np.int64], Measurements]
"""Rows (j,) of some placements, and what a study holds of them."""


class NoStudy:
    """The interface of `StudyFile` for a search without one: it keeps nothing."""

    workers: tuple[Origin, ...] = ()

    def __enter__(self) -> NoStudy:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def first(self) -> None:
        """None."""

    def stored_samples(
        self, first: int, placements: NDArray[np.int32], of: Of = "samples"
    ) -> StoredSamples:
        """No rows: there is no file."""
        return np.empty(0, np.int64), Measurements(np.empty(0), np.empty(0, np.uint8))

    def record(
        self,
        numbers: NDArray[np.int64],
        placements: NDArray[np.int32],
        measurements: Measurements,
        batch: int,
        of: Of = "samples",
    ) -> None:
        """Store nothing."""

    def keep(self, samples_done: int, state: Callable[[], State], now: bool = False) -> None:
        """Store no checkpoint."""

    def checkpoint(self) -> tuple[int, State | None]:
        """None."""
        return 0, None

    def batches(self, until: int) -> Iterator[tuple[int, NDArray[np.int32], Measurements]]:
        """None."""
        return iter(())
