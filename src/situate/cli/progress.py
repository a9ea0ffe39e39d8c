"""Progress of a search: one line on a terminal, TensorBoard logs, and a learning curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from situate.cli.terminal import fail
from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.report.learning_curve import WINDOW, Curve
from situate.report.text import plural
from situate.report.units import value_text
from situate.results.result import Progress
from situate.writers.tensorboard import Scalars

BLOCKS = "▁▂▃▄▅▆▇█"
NO_VALUE = "·"
SPARKLINE_WIDTH = 24
"""Largest number of characters of a sparkline."""


class SearchProgress:
    """Follows one search.

    Args:
        problem, method: of the search.
        samples: the number that a method that learns will measure; None for other methods.

    Attributes:
        figures: the latest `Progress.figures`.
    """

    def __init__(self, problem: Problem, method: str, samples: int | None = None) -> None:
        self.problem = problem
        self.method = method
        self.samples = samples
        self._batches: list[Floats] = []
        self._recent = np.empty(0)
        self._means: list[float] = []
        self._failed = 0
        self._best = np.inf
        self._evaluations = 0
        self.figures: dict[str, float] = {}
        self._improvements: list[tuple[int, float]] = []

    def record(self, first: int, measurements: Measurements) -> None:
        """Count a batch of measurements."""
        seconds = measurements.seconds
        self._batches.append(seconds)
        # The running mean is that of the last WINDOW samples, without failures.
        self._recent = np.concatenate((self._recent, seconds))[-WINDOW:]
        finite = self._recent[np.isfinite(self._recent)]
        self._means.append(float(finite.mean()) if finite.size else np.nan)
        self._failed += int((~measurements.ok).sum())
        self._best = min(self._best, float(seconds.min()))

    def update(self, progress: Progress) -> str:
        """Count an improvement; returns one line about the state of the search."""
        self._evaluations, self.figures = progress.evaluations, progress.figures
        best = self._improvements[-1][1] if self._improvements else np.inf
        if progress.feasible and progress.value < best:
            self._improvements.append((progress.evaluations, progress.value))
        state = (self._learning if self.samples else self._searching)(progress)
        return f"{self.method}: {state}, {progress.seconds:.0f} s; Ctrl-C keeps it"

    def curve(self) -> Curve:
        """The learning curve of the search."""
        if self._batches:
            return Curve.of_samples(self.method, np.concatenate(self._batches))
        return Curve.of_improvements(self.method, self._evaluations, self._improvements)

    def _searching(self, progress: Progress) -> str:
        state = self._bound(progress) or ", does not fit yet"
        return f"best {self._text(progress.value)}{state}, {progress.evaluations:,} evaluations"

    def _bound(self, progress: Progress) -> str:
        """The lower bound, once a plan fits."""
        return f", bound {self._text(progress.lower_bound)}" if progress.feasible else ""

    def _learning(self, progress: Progress) -> str:
        count = sum(map(len, self._batches))
        mean = self._means[-1] if self._means else np.nan
        failed = f", {self._failed:,} failed" if self._failed else ""
        return (
            f"{count:,} of {self.samples:,} samples, best {self._text(self._best)}"
            f"{self._bound(progress)}, mean of the last {WINDOW} {self._text(mean)} "
            f"{sparkline(self._means)}{failed}{_workers(progress)}{_controllers(progress)}"
        )

    def _text(self, value: float) -> str:
        return value_text(value, self.problem.objective, self.problem.graph.unit)


def _workers(progress: Progress) -> str:
    """The state of the workers, if there are any."""
    workers = progress.workers
    if workers is None:
        return ""
    failures = f" ({plural(workers.failures, 'failure')})" if workers.failures else ""
    busy = f"{workers.busy} of {plural(workers.count, 'worker')} busy"
    return f", {busy}{failures}, {progress.samples_per_second:.3g} samples/s"


def _controllers(progress: Progress) -> str:
    """The staleness of several controllers, if there are any."""
    asynchrony = progress.asynchrony
    if asynchrony is None:
        return ""
    return f", gradients {asynchrony.mean_staleness:.1f} updates old"


def sparkline(values: Sequence[float], width: int = SPARKLINE_WIDTH) -> str:
    """Values as a row of at most `width` blocks of their height; a dot for NaN."""
    # Evenly spaced places, with the first and the last value among them.
    columns = np.linspace(0, len(values) - 1, min(width, len(values))).astype(int)
    heights = np.array(values, np.float64)[columns]
    # A constant curve has no span: it is drawn at the lowest height.
    finite = heights[np.isfinite(heights)]
    low, span = finite.min(initial=np.inf), np.ptp(finite) if finite.size else 0.0
    return "".join(_block((value - low) / (span or 1.0)) for value in heights)


def _block(height: float) -> str:
    return BLOCKS[round(height * (len(BLOCKS) - 1))] if np.isfinite(height) else NO_VALUE


@contextmanager
def tensorboard(folder: Path | None) -> Iterator[TensorBoard]:
    """A writer of batches of measurements to `folder`; without a folder it writes nothing."""
    run = TensorBoard(None if folder is None else Scalars(folder))
    try:
        yield run
    finally:
        run.close()


class TensorBoard:
    """The TensorBoard logs of one method. A search goes on if they cannot be written.

    Attributes:
        complete: True unless a write failed.
    """

    def __init__(self, scalars: Scalars | None) -> None:
        self.complete = True
        self._scalars = scalars
        self._best = np.inf

    def record(self, first: int, measurements: Measurements, figures: Mapping[str, float]) -> None:
        """Write a batch of measurements, and the latest `Progress.figures`."""
        if self._scalars is None:
            return
        seconds = measurements.seconds[measurements.ok]
        self._best = min(self._best, float(seconds.min(initial=np.inf)))
        values = {
            "seconds/batch_mean": float(seconds.mean()) if seconds.size else np.nan,
            "seconds/best": self._best,
            "failures/batch_share": 1 - len(seconds) / len(measurements),
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
