"""TensorBoard while a method learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from situate.cli.terminal import note
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.writers.tensorboard import Scalars


@contextmanager
def board(folder: Path | None) -> Iterator[Callable[[int, Measurements], None]]:
    """What writes each batch of measurements to the run `folder`, or with None nothing."""
    if folder is None:
        yield lambda first, measurements: None
        return
    run = _Run(Scalars(folder))
    try:
        yield run.measured
    finally:
        run.close()


class _Run:
    """One method's scalars; where they cannot be written any more, the search goes on without."""

    def __init__(self, scalars: Scalars) -> None:
        self._scalars: Scalars | None = scalars
        self._best = np.inf

    def measured(self, first: int, measurements: Measurements) -> None:
        if self._scalars is None:
            return
        ran = measurements.seconds[measurements.ok]
        self._best = min(self._best, float(ran.min(initial=np.inf)))
        values = {
            "seconds/batch_mean": float(ran.mean()) if ran.size else np.nan,
            "seconds/best": self._best,
            "failures/batch_share": 1 - len(ran) / len(measurements),
        }
        try:
            self._scalars.write(first + len(measurements), values)
        except SituateError as error:
            note(f"{error}; TensorBoard gets no more of this search")
            self._scalars = None

    def close(self) -> None:
        if self._scalars is not None:
            with suppress(SituateError):
                self._scalars.close()
