"""The loop of controllers that do not wait for one another; each learns when its batch ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements
from situate.evaluators.workers.machine import WorkerMachine
from situate.evaluators.workers.messages import Task
from situate.solvers.learned.asynchronous.controllers import WallControllers
from situate.solvers.learned.sampling import Sampling


@dataclass
class _Batch:
    """A controller's batch in progress; unmeasured samples have undefined seconds.

    Attributes:
        first: number of its first sample.
        remaining: number of unmeasured samples.
    """

    first: int
    placements: NDArray[np.int32]
    seconds: NDArray[np.float64]
    outcome: NDArray[np.uint8]
    remaining: int

    def holds(self, number: int) -> bool:
        """True if the batch has the sample of this number."""
        return self.first <= number < self.first + len(self.placements)


class WallSampling(Sampling):
    """The samples of `WallControllers` on workers that answer in any order."""

    @property
    def _controllers(self) -> WallControllers:
        assert isinstance(self.learner.inner, WallControllers)
        return self.learner.inner

    @property
    def _workers(self) -> WorkerMachine:
        assert isinstance(self.machine, WorkerMachine), "the wall clock needs workers"
        return self.machine

    def _learn(self, samples: int) -> None:
        self._batches: dict[int, _Batch] = {}
        self._tasks: list[Task] = []
        for number in self._controllers.pending:
            self._begin(number, self._controllers.again(number))
        self._ask(samples)
        self._save()
        self._learn_from_whole(samples)
        for task, measurements in self._workers.measure_growing(self._tasks):
            self._take(task, measurements)
            self._report_workers()
            self._learn_from_whole(samples)
            if self._finished():
                return

    def _take(self, task: Task, measurements: Measurements) -> None:
        """Record the measurement of a sample in its batch and in the study."""
        [number] = task.numbers.tolist()
        batch = next(waiting for waiting in self._batches.values() if waiting.holds(number))
        self.study.record(task.numbers, task.placements, measurements, batch.first)
        row = number - batch.first
        batch.seconds[row], batch.outcome[row] = measurements.seconds[0], measurements.outcome[0]
        batch.remaining -= 1

    def _ask(self, samples: int) -> None:
        """Draw batches from the free controllers, up to so many samples in all."""
        while (number := self._controllers.free()) is not None:
            first = self._controllers.samples_asked
            k = min(self.learner.batch(), samples - first)
            if k < 1:
                return
            self._begin(number, self.learner.ask(first, k))

    def _begin(self, number: int, placements: NDArray[np.int32]) -> None:
        """Queue the samples of a batch that the study does not hold."""
        first, count = self._controllers.pending[number].first, len(placements)
        recorded_rows, recorded = self.study.stored_samples(first, placements)
        batch = _Batch(first, placements, np.empty(count), np.empty(count, np.uint8), count)
        batch.seconds[recorded_rows] = recorded.seconds
        batch.outcome[recorded_rows] = recorded.outcome
        batch.remaining -= len(recorded_rows)
        self._batches[number] = batch
        for row in np.setdiff1d(np.arange(count), recorded_rows).tolist():
            # `measure_growing` takes tasks from this list while it runs.
            self._tasks.append(Task(placements[row : row + 1], np.array([first + row])))

    def _learn_from_whole(self, samples: int) -> None:
        """Let controllers learn from their complete batches, and draw new ones."""
        # A new batch may lie in the study as a whole, so completeness is checked again.
        while whole := [number for number, batch in self._batches.items() if not batch.remaining]:
            begin = self.search.budget.seconds
            batch = self._batches.pop(whole[0])
            measurements = Measurements(batch.seconds, batch.outcome)
            self._count(batch.first, batch.placements, measurements)
            self._controllers.end(whole[0], batch.placements, measurements)
            self.sample_count += len(batch.placements)
            self._ask(samples)
            self._save()
            self.search.budget.record_offer(self.search.budget.seconds - begin)

    def _save(self, now: bool = False) -> None:
        """Save the state after every draw, whatever `now` says.

        The next draws depend on the order in which batches end. So the study must not hold a
        sample that the saved state does not know. All samples before the first pending one are
        complete.
        """
        waited = (batch.first for batch in self._controllers.pending.values())
        self.study.keep(
            min(waited, default=self._controllers.samples_asked),
            self.learner.state,
            now=True,
        )

    def _resume(self) -> int:
        """Resume from the last checkpoint; pending batches count when they are complete."""
        _, state = self.study.checkpoint()
        if state is None:
            return 0
        self._restore(state)
        waited = {batch.first for batch in self._controllers.pending.values()}
        for first, placements, measurements in self.study.batches(self._controllers.samples_asked):
            self.learner.check(placements, f"{self.learning.study}: sample", first)
            if first not in waited:
                self._count(first, placements, measurements)
                self.sample_count += len(placements)
        return self.sample_count
