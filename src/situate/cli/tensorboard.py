"""TensorBoard while a method learns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from situate.cli.terminal import fail
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.writers.tensorboard import Scalars


@contextmanager
def tensorboard(folder: Path | None) -> Iterator[TensorBoard]:
    """A writer of each batch of measurements to the run `folder`; with None it writes nothing."""
    run = TensorBoard(None if folder is None else Scalars(folder))
    try:
        yield run
    finally:
        run.close()


class TensorBoard:
    """One method's scalars; where they cannot be written any more, the search goes on without.

    Attributes:
        complete: all was written.
    """

    def __init__(self, scalars: Scalars | None) -> None:
        self.complete = True
        self._scalars = scalars
        self._best = np.inf

    def measured(
        self, first: int, measurements: Measurements, figures: Mapping[str, float]
    ) -> None:
        """Write a batch, and the latest of `Progress.figures`."""
        if self._scalars is None:
            return
        ran = measurements.seconds[measurements.ok]
        self._best = min(self._best, float(ran.min(initial=np.inf)))
        values = {
            "seconds/batch_mean": float(ran.mean()) if ran.size else np.nan,
            "seconds/best": self._best,
            "failures/batch_share": 1 - len(ran) / len(measurements),
            **figures,
        }
        try:
            self._scalars.write(first + len(measurements), values)
        except SituateError as error:
            self._give_up(error)

    def close(self) -> None:
        if self._scalars is not None:
            try:
                self._scalars.close()
            except SituateError as error:
                self._give_up(error)

    def _give_up(self, error: SituateError) -> None:
        fail(f"{error}; TensorBoard gets no more of this search")
        self.complete, self._scalars = False, None
