"""The measurements of a method that learns, and the progress of its workers and controllers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from situate.evaluators.measurements import Measurements
from situate.results.result import Asynchrony, Knowledge, Progress, Result, WorkerProgress
from situate.solvers.search import Search


class Telemetry:
    """Additions of a learning method to the progress and the result of its search.

    Attributes:
        measurements: copies of the batches that the method learnt from.
        measured_best: measured seconds of the plan on a given evaluator; None without one.
        knows: the method's knowledge of the machine; None if unknown.
        workers: returns the progress of the workers that measure; None without any.
        asynchrony: returns the progress of several controllers; None without them.
    """

    def __init__(self) -> None:
        self.measurements: list[Measurements] = []
        self.measured_best: float | None = None
        self.knows: Knowledge | None = None
        self.workers: Callable[[], WorkerProgress | None] = lambda: None
        self.asynchrony: Callable[[], Asynchrony | None] = lambda: None

    def add(self, measurements: Measurements) -> None:
        """Store a copy of a batch."""
        # Learners and evaluators of the user's own may overwrite their arrays later.
        seconds, outcome = measurements.times(np.inf), measurements.outcome.copy()
        self.measurements.append(Measurements(seconds, outcome))

    def progress(self, progress: Progress) -> Progress:
        """The progress of the search, with that of workers and controllers."""
        return replace(progress, workers=self.workers(), asynchrony=self.asynchrony())

    def reporting(
        self, on_progress: Callable[[Progress], None] | None
    ) -> Callable[[Progress], None] | None:
        """A callback for the search that adds the progress of workers and controllers."""
        if on_progress is None:
            return None
        return lambda progress: on_progress(self.progress(progress))

    def result(self, search: Search, method: str) -> Result:
        """The result of the search, with all measured seconds.

        Raises:
            SituateError: the search found no plan.
        """
        result = search.result(method, self.knows)
        return replace(
            result,
            samples=np.concatenate([batch.seconds for batch in self.measurements] or [np.empty(0)]),
            asynchrony=self.asynchrony(),
            measured=self.measured_best,
        )
