"""An evaluator whose samples are measured by concurrent workers."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.evaluators.measurements import Evaluator, Measurements, consecutive_runs
from situate.evaluators.workers.dispatch import Dispatch
from situate.evaluators.workers.messages import Counts, Task
from situate.evaluators.workers.processes import ProcessWorkers
from situate.evaluators.workers.workers import DEFAULT_TERMS, Terms, Workers
from situate.results.result import WorkerProgress

TASKS_PER_WORKER = 2
"""Tasks per worker in a batch, if it is large enough; with one, all wait for the slowest."""

MIN_SENT_SECONDS = 0.02
"""Seconds of measuring below which a batch is measured here, as messages take longer."""

LOCAL_TIMING_BATCHES = 3
"""Batches measured here to learn the duration. The minimum counts, for the first batch is slow for
other reasons."""


class WorkerMachine:
    """Measures as `evaluator` does, by workers; a context manager that ends them.

    A measurement depends on the sample's number and placement alone, not on the worker or the
    number of workers.

    Args:
        evaluator: copied to every worker.
        workers: their number; the first task starts them.
        here: an equal evaluator in this process for batches too short to send; None to measure
            nothing here.
        terms: see `Dispatch`.
        start: makes the workers.

    Raises:
        SituateError: fewer than one worker, or an evaluator that cannot be sent to a process.
    """

    at_once: int | None = None
    """No limit: each measurement is handed over on arrival."""

    def __init__(
        self,
        evaluator: Evaluator,
        workers: int,
        *,
        here: Evaluator | None = None,
        terms: Terms = DEFAULT_TERMS,
        start: Callable[[bytes], Workers] = ProcessWorkers,
    ) -> None:
        if workers < 1:
            raise SituateError(f"workers: must be at least 1, got {workers}")
        self._evaluator, self._here, self._count = evaluator, here, workers
        self._seconds_here: list[float] = []
        self._dispatch = Dispatch(start(_packed_evaluator(evaluator)), workers, terms)

    @property
    def name(self) -> str:
        """The evaluator's name: a study may go on with other workers."""
        return self._evaluator.name

    @property
    def finalists(self) -> int:
        """The evaluator's finalists."""
        return self._evaluator.finalists

    @property
    def counts(self) -> Counts:
        """Statistics of the workers so far."""
        return self._dispatch.counts

    def progress(self) -> WorkerProgress | None:
        """See `Dispatch.progress`."""
        return self._dispatch.progress()

    def show(self, figures: Mapping[str, float]) -> None:
        """See `HasWorkers`."""
        self._dispatch.show(figures)

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """See `Evaluator`."""
        numbers = first + np.arange(len(placements))
        return gather(self.measure_each(placements, numbers), len(numbers))

    def measure_each(
        self, placements: NDArray[np.int32], numbers: NDArray[np.int64], avoid: str = ""
    ) -> Iterator[tuple[NDArray[np.int64], Measurements]]:
        """See `MeasuresEach`, and `Task.avoid`."""
        if self._here and self._worth_measuring_here(len(numbers)):
            return self._measure_here(self._here, placements, numbers)
        return self._measure_there(placements, numbers, avoid)

    def _worth_measuring_here(self, count: int) -> bool:
        timed = self._seconds_here
        return len(timed) < LOCAL_TIMING_BATCHES or min(timed) * count < MIN_SENT_SECONDS

    def _measure_here(
        self, here: Evaluator, placements: NDArray[np.int32], numbers: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Measurements]]:
        for rows in consecutive_runs(numbers, None):
            begin = time.perf_counter()
            measurements = here.measure(placements[rows], int(numbers[rows[0]]))
            if len(self._seconds_here) < LOCAL_TIMING_BATCHES:
                # Per sample, as batches differ in size.
                self._seconds_here.append((time.perf_counter() - begin) / len(rows))
            yield rows, measurements

    def _measure_there(
        self, placements: NDArray[np.int32], numbers: NDArray[np.int64], avoid: str
    ) -> Iterator[tuple[NDArray[np.int64], Measurements]]:
        # Rounded up, so that the last worker has no extra task.
        size = max(1, -(-len(numbers) // (TASKS_PER_WORKER * self._count)))
        pieces = list(consecutive_runs(numbers, min(size, self._evaluator.at_once or size)))
        tasks = [Task(placements[rows], numbers[rows], avoid) for rows in pieces]
        for number, measurements in self._dispatch.answers(tasks):
            yield pieces[number], measurements

    def measure_growing(self, tasks: list[Task]) -> Iterator[tuple[Task, Measurements]]:
        """Measure tasks, and tasks added to the list meanwhile, until none is left.

        Yields:
            Each task with its measurements, in order of arrival.
        """
        for number, measurements in self._dispatch.answers(tasks):
            yield tasks[number], measurements

    def close(self) -> None:
        """End the workers."""
        self._dispatch.close()

    def __enter__(self) -> WorkerMachine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _packed_evaluator(evaluator: Evaluator) -> bytes:
    """An evaluator as bytes, for a process that trusts this one.

    Raises:
        SituateError: it cannot be copied.
    """
    try:
        return pickle.dumps(evaluator)
    except SituateError:
        raise
    except Exception as error:
        raise SituateError(
            f"evaluator {type(evaluator).__name__!r} cannot be copied to workers ({error}): define "
            "its class in a module, and let it open what cannot be copied when it first measures"
        ) from None


def gather(pieces: Iterable[tuple[NDArray[np.int64], Measurements]], count: int) -> Measurements:
    """Measurements of `count` samples, from parts with their rows."""
    seconds, outcome = np.empty(count), np.empty(count, np.uint8)
    for rows, measurements in pieces:
        seconds[rows], outcome[rows] = measurements.seconds, measurements.outcome
    return Measurements(seconds, outcome)
