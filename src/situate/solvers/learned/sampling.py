"""The loop of a method that learns: ask, measure, save and tell, until the budget ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from situate.data.arrays import Floats, Placement, Placements
from situate.errors import SituateError
from situate.evaluators.measurements import (
    Evaluator,
    HasWorkers,
    Measurements,
    MeasuresElsewhere,
    Origin,
    checked_measurements,
)
from situate.evaluators.references import References
from situate.solvers.learned.checks import CheckedLearner, measure
from situate.solvers.learned.finalists import fastest, finalists
from situate.solvers.learned.learner import Learning, State
from situate.solvers.learned.telemetry import Telemetry
from situate.solvers.search import Search
from situate.study.file import NoStudy, StudyFile
from situate.study.samples import SampleTable

REPORT_SECONDS = 0.2
"""Seconds between two reports on workers."""


class Sampling:
    """The samples of one learner on one machine.

    Args:
        search: whose budget ends the loop, and which adopts the best placements.
        learning: options of the method.
        telemetry: receives all measurements.
        learner: with checks of its answers.
        machine: measures placements.
        study: records measurements and checkpoints.

    Attributes:
        best_seconds: of the fastest sample so far, infinite before the first.
        sample_count: number of samples that the learner knows.
    """

    def __init__(
        self,
        search: Search,
        learning: Learning,
        telemetry: Telemetry,
        learner: CheckedLearner,
        machine: Evaluator,
        study: StudyFile | NoStudy,
    ) -> None:
        self.search, self.learning, self.telemetry = search, learning, telemetry
        self.learner, self.machine, self.study = learner, machine, study
        self.best_seconds = np.inf
        self.sample_count = 0
        self._order = np.array(search.problem.graph.order, np.int32)
        self._measured_again = 0
        self._references = References(study.workers)
        self._last_report = 0.0
        self._times: dict[bytes, list[float]] = {}

    def run(self, samples: int) -> None:
        """Learn from up to so many samples, resumed ones included, and choose the plan."""
        resumed = self._resume()
        self._learn(samples)
        if self.sample_count > resumed:
            self._save(now=True)
        if self._times:
            # Only a complete study records its finals: a longer one would have other finalists.
            self.study = self.study if self.sample_count == samples else NoStudy()
            self._settle()

    def _learn(self, samples: int) -> None:
        # The first batch is measured whatever the budget, so that there is a plan.
        while self.sample_count < samples and not (self.sample_count and self._finished()):
            self._step(min(self.learner.batch(), samples - self.sample_count))

    def _save(self, now: bool = False) -> None:
        self.study.keep(self.sample_count, self.learner.state, now)

    def _finished(self) -> bool:
        """True if the budget is spent. On the simulated machine a plan that meets the bound also
        ends the search; the bound does not hold for other machines."""
        simulated = self.learning.evaluator is None
        return self.search.finished() if simulated else self.search.budget.remaining() <= 0

    def _resume(self) -> int:
        """Resume from the last checkpoint and count its samples again; return their number."""
        self.sample_count, state = self.study.checkpoint()
        for first, placements, measurements in self.study.batches(self.sample_count):
            self.learner.check(placements, f"{self.learning.study}: sample", first)
            self._count(first, placements, self._confirmed(placements, measurements))
        if state is not None:
            self._restore(state)
        return self.sample_count

    def _restore(self, state: State) -> None:
        try:
            self.learner.inner.restore(state)
        except (ValueError, OverflowError) as error:  # ours, and of numbers that are none
            raise SituateError(
                f"{self.learning.study}: {error}; give another file to start again"
            ) from None

    def _step(self, k: int) -> None:
        begin = self.search.budget.seconds
        placements = self.learner.ask(self.sample_count, k)
        measurements = self._confirmed(placements, self._measure(self.sample_count, placements))
        self._count(self.sample_count, placements, measurements)
        self.learner.inner.tell(placements, measurements)
        self.sample_count += k
        self._save()
        self.search.budget.record_offer(self.search.budget.seconds - begin)

    def _measure(
        self, first: int, placements: Placement, of: SampleTable = "samples"
    ) -> Measurements:
        """Measurements of these samples, from the study or else from the machine.

        Each new measurement is recorded at once, so that a killed search loses only those in
        progress.
        """
        recorded_rows, recorded = self.study.stored_samples(first, placements, of)
        seconds, outcome = np.empty(len(placements)), np.empty(len(placements), np.uint8)
        seconds[recorded_rows], outcome[recorded_rows] = recorded.seconds, recorded.outcome
        origins = dict(zip(recorded_rows.tolist(), recorded.origins, strict=False))
        # A resumed search measures only the rows that its study lacks.
        missing = np.setdiff1d(np.arange(len(placements)), recorded_rows)
        # Finals continue the numbers of samples, so that the simulated machine draws new noise.
        begin = first + (self.sample_count if of == "finals" else 0)
        for rows, measurements in measure(self.machine, placements, missing, begin):
            new = self._references.normalise(measurements)
            self.study.record(first + rows, placements[rows], new, first, of)
            seconds[rows], outcome[rows] = new.seconds, new.outcome
            origins |= dict(zip(rows.tolist(), new.origins, strict=False))
            self._report_workers()
        by = tuple(map(origins.get, range(len(placements)))) if origins else ()
        return Measurements(seconds, outcome, by)

    def _confirmed(self, placements: Placement, measurements: Measurements) -> Measurements:
        """The measurements, in which another worker has measured each new best again.

        The minimum of noisy times is biased, so the second measurement replaces the first.
        """
        if not isinstance(self.machine, MeasuresElsewhere):
            return measurements
        seconds, outcome, best = (
            measurements.times(np.inf),
            measurements.outcome.copy(),
            self.best_seconds,
        )
        origins = measurements.origins or (None,) * len(measurements)
        for row in np.argsort(seconds, kind="stable").tolist():
            # Rows rise in seconds, so no later one is a new best.
            if not seconds[row] < best:
                break
            again = self._elsewhere(self.machine, placements[row], origins[row])
            seconds[row], outcome[row] = again.times(np.inf)[0], again.outcome[0]
            best = min(best, seconds[row])
        return replace(measurements, seconds=seconds, outcome=outcome)

    def _elsewhere(
        self, machine: MeasuresElsewhere, placement: Placement, origin: Origin | None
    ) -> Measurements:
        number, one = self._measured_again, placement[None]
        self._measured_again += 1
        recorded_rows, recorded = self.study.stored_samples(number, one, "again")
        if len(recorded_rows):
            return recorded
        measurements = checked_measurements(
            machine, machine.measure_elsewhere(placement, number, origin), 1
        )
        new = self._references.normalise(measurements)
        self.study.record(np.array([number]), one, new, number, "again")
        return new

    def _report_workers(self) -> None:
        """Report the workers' progress now and then, because a batch may take long."""
        late = self.search.budget.seconds - self._last_report >= REPORT_SECONDS
        if late and self.telemetry.workers() is not None:
            self._last_report = self.search.budget.seconds
            self.search.report()
            self._show_figures()

    def _show_figures(self) -> None:
        """Show the search's figures on the workers' own board, if they have one."""
        if isinstance(self.machine, HasWorkers):
            best = {"best_seconds": self.best_seconds} if np.isfinite(self.best_seconds) else {}
            progress = self.telemetry.progress(self.search.progress())
            self.machine.show({**best, **progress.figures})

    def _count(self, first: int, placements: Placement, measurements: Measurements) -> None:
        self.search.budget.evaluations += len(measurements)
        self.telemetry.add(measurements)
        if self.learning.on_measured is not None:
            self.learning.on_measured(first, measurements)
        seconds = measurements.times(np.inf)
        best = int(np.argmin(seconds))
        if seconds[best] < self.best_seconds or self.search.best is None:
            self.best_seconds = float(seconds[best])
            self._adopt(placements[best], self.best_seconds)
        # Only finalists need all times; without them a long search would hold them for nothing.
        if self.machine.finalists:
            for placement, duration in zip(placements, seconds.tolist(), strict=True):
                if np.isfinite(duration):
                    self._times.setdefault(placement.tobytes(), []).append(duration)
        self.search.report()

    def _adopt(self, placement: Placement, seconds: float) -> None:
        if self.learning.evaluator is not None:
            self.telemetry.measured_best = seconds
        self.search.adopt(placement, self._order)

    def _settle(self) -> None:
        """Choose the plan among the finalists."""
        most, has_start = self.machine.finalists, self.learning.start is not None
        candidates = finalists(self._times, most, self.sample_count, has_start)
        self._adopt(*fastest(candidates, self._measure_finalists))

    def _measure_finalists(self, first: int, placements: Placements) -> Floats:
        return self._measure(first, placements, "finals").times(np.inf)
