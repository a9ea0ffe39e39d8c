"""The one driver: turns any learner into a solver, against any evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.errors import SituateError
from situate.evaluators.measurements import (
    OUTCOMES,
    Evaluator,
    HasWorkers,
    Measurements,
    MeasuresElsewhere,
    Origin,
    checked_measurements,
)
from situate.evaluators.references import References
from situate.evaluators.simulated import SimulatedMachine
from situate.evaluators.steps import CountsSteps
from situate.evaluators.workers.places import Place
from situate.solvers.learned.checks import CheckedLearner, check_evaluator, measure
from situate.solvers.learned.learner import Learner, Learning, MakeLearner, State
from situate.solvers.learned.paper_steps import PAPER_STEPS
from situate.solvers.registry import METHODS
from situate.solvers.search import Search
from situate.study.file import NoStudy, StudyFile
from situate.study.samples import SampleTable
from situate.version import VERSION

if TYPE_CHECKING:
    from situate.solvers.learned.asynchronous.controllers import Controllers

SAMPLES = 2400
"""Samples if no number of evaluations is given (Post, section 4)."""

SAMPLES_EACH = 8
"""Samples per finalist. Each finalist is measured again four to five times on average."""

LEAST_ROUND_SECONDS, FAILED_SECONDS = 1e-9, 1e100
"""Least seconds of a round of finalists, and the seconds of a failed measurement."""

PLANNING_EVALUATIONS = 5000
"""Evaluations of `auto` for the plan to measure first; takes seconds on a thousand ops."""

REPORT_SECONDS = 0.2
"""Seconds between two reports on workers."""

REMEDIES = {
    "out_of_memory": "go on with more or larger devices, with another grouping, or with method "
    "'auto', which looks for a plan that fits first",
    "crash": "run a plan of one device first, to see what stops it",
    "timeout": "give a measurement more time",
    "nan": "run a plan of one device first, to see where its loss ceases to be a number",
}
"""Advice by outcome if no placement ran."""


def learn(search: Search, method: str, make: MakeLearner, run: type[Run] | None = None) -> None:
    """Ask, measure, save and tell until the budget ends; the plan is the best measured placement.

    Args:
        run: the class of the run; None for `Run`.

    Raises:
        SituateError: an objective other than `time`; a study of another problem or method; an
            invalid answer of the learner or the evaluator.
    """
    problem = search.problem
    if problem.objective != "time":
        raise SituateError(
            f"method {method!r} learns from step times: it cannot plan for {problem.objective}"
        )
    samples = search.evaluation_limit or SAMPLES
    with _machine(search, method) as machine:
        _learn_from(search, machine, method, make, samples, run or Run)


def _learn_from(
    search: Search,
    machine: Evaluator,
    method: str,
    make: MakeLearner,
    samples: int,
    run: type[Run],
) -> None:
    problem, learning = search.problem, search.learning
    study: StudyFile | NoStudy = NoStudy()
    if learning.evaluator is not None and problem.costs is not None and learning.start is None:
        learning = replace(learning, start=lambda: _start(search, study))
    learner = _make_learner(search, method, make, learning, samples)
    checked_learner = CheckedLearner(method, problem, learner)
    search.knows = checked_learner.knows
    header = _header(search, checked_learner, machine, samples)
    with StudyFile.open(learning.study, header) as opened:
        study = opened
        if learning.controllers is not None:
            search.asynchrony = cast("Controllers", learner).asynchrony
        run(search, checked_learner, machine, study, learning.start is not None).until(samples)
    _warn_of_failures(search, method)


def _make_learner(
    search: Search, method: str, make: MakeLearner, learning: Learning, samples: int
) -> Learner:
    """The learner, or several controllers as one learner."""
    if learning.controllers is None:
        return make(search.problem, learning, samples, search.seed)
    if method not in METHODS or not METHODS[method].asynchronous:
        names = ", ".join(name for name, other in METHODS.items() if other.asynchronous)
        raise SituateError(
            f"controllers: method {method!r} has one, which waits for what it asked for; those "
            f"that learn asynchronously: {names}"
        )
    if learning.controllers > samples:
        raise SituateError(
            f"controllers: {learning.controllers} are more than the {samples} samples that they "
            "share: ask for fewer, or for more samples"
        )
    from situate.solvers.learned.asynchronous.by_clock import make_controllers

    return make_controllers(make, search.problem, learning, samples, search.seed)


@contextmanager
def _machine(search: Search, method: str) -> Iterator[Evaluator]:
    """The evaluator, on workers if there are any."""
    evaluator, workers = search.learning.evaluator, search.learning.workers
    machine = _simulated(search, search.threads) if evaluator is None else evaluator
    check_evaluator(machine)
    machine = _as_papers_measure(search, method, machine)
    if workers is None:
        if isinstance(machine, HasWorkers):
            search.workers = machine.progress
        yield machine
        return
    copied, here = machine, None
    if evaluator is None:
        copied, here = _as_papers_measure(search, method, _simulated(search, threads=1)), machine
    with Place.parse(workers).machine(copied, here) as shared:
        search.workers = shared.progress
        yield shared
        if failures := shared.counts.failures_text():
            warnings.warn(failures, stacklevel=2)


def _simulated(search: Search, threads: int) -> SimulatedMachine:
    return SimulatedMachine(search.problem, search.learning.noise, search.seed, threads)


def _as_papers_measure(search: Search, method: str, machine: Evaluator) -> Evaluator:
    """The machine; in `paper` settings it takes the steps of the method's paper if it can."""
    steps = PAPER_STEPS.get(method) if search.learning.settings == "paper" else None
    return machine.by(steps) if steps and isinstance(machine, CountsSteps) else machine


def _start(search: Search, study: StudyFile | NoStudy) -> Placement:
    """The placement that a real machine with measured costs runs first: the plan of `auto`.

    A resumed study keeps its first plan, because a time limit may make `auto` find another.
    """
    placement = study.first()
    if placement is not None:
        return placement
    planning = search.beside(PLANNING_EVALUATIONS)
    METHODS["auto"].run(planning)
    assert planning.best is not None
    return planning.best.placement


class Run:
    """One learner against one machine."""

    def __init__(
        self,
        search: Search,
        checked_learner: CheckedLearner,
        machine: Evaluator,
        study: StudyFile | NoStudy,
        has_start: bool,
    ) -> None:
        self.search, self.machine, self.study = search, machine, study
        self.checked_learner, self.learner = checked_learner, checked_learner.learner
        self.order = np.array(search.problem.graph.order, np.int32)
        self.has_start = has_start
        self.best = np.inf
        self.sample_count = 0
        self.measured_again = 0
        self.references = References(study.workers)
        self.reported_at = 0.0
        self.times: dict[bytes, list[float]] = {}

    def until(self, samples: int) -> None:
        resumed = self._resume()
        self._learn(samples)
        if self.sample_count > resumed:
            self._keep(now=True)
        if self.times:
            # Only a complete study records its finals: a longer one would have other finalists.
            self.study = self.study if self.sample_count == samples else NoStudy()
            self._settle()

    def _learn(self, samples: int) -> None:
        while self.sample_count < samples and not (self.sample_count and self._finished()):
            self._step(min(self.checked_learner.batch(), samples - self.sample_count))

    def _keep(self, now: bool = False) -> None:
        self.study.keep(self.sample_count, self.checked_learner.state, now)

    def _finished(self) -> bool:
        """True if the budget is spent. On the simulated machine a plan that meets the bound also
        ends the search; the bound does not hold for other machines."""
        simulated = self.search.learning.evaluator is None
        return self.search.finished() if simulated else self.search.budget_left() <= 0

    def _resume(self) -> int:
        """Resume from the last checkpoint and count its samples again; return their number."""
        self.sample_count, state = self.study.checkpoint()
        for first, placements, measurements in self.study.batches(self.sample_count):
            self.checked_learner.check(placements, f"{self.search.learning.study}: sample", first)
            self._count(first, placements, self._confirmed(placements, measurements))
        if state is not None:
            self._restore(state)
        return self.sample_count

    def _restore(self, state: State) -> None:
        try:
            self.learner.restore(state)
        except (ValueError, OverflowError) as error:  # ours, and of numbers that are none
            raise SituateError(
                f"{self.search.learning.study}: {error}; give another file to start again"
            ) from None

    def _step(self, k: int) -> None:
        begin = self.search.seconds
        placements = self.checked_learner.ask(self.sample_count, k)
        measurements = self._confirmed(placements, self._measure(self.sample_count, placements))
        self._count(self.sample_count, placements, measurements)
        self.learner.tell(placements, measurements)
        self.sample_count += k
        self._keep()
        self.search.record_seconds(self.search.seconds - begin)

    def _measure(
        self, first: int, placements: Placement, table: SampleTable = "samples"
    ) -> Measurements:
        """Measurements of these samples, from the study or else from the machine.

        Each new measurement is recorded at once, so that a killed search loses only those in
        progress.
        """
        recorded_rows, recorded = self.study.stored_samples(first, placements, table)
        seconds, outcome = np.empty(len(placements)), np.empty(len(placements), np.uint8)
        seconds[recorded_rows], outcome[recorded_rows] = recorded.seconds, recorded.outcome
        origins = dict(zip(recorded_rows.tolist(), recorded.origins, strict=False))
        missing = np.setdiff1d(np.arange(len(placements)), recorded_rows)
        begin = first + (self.sample_count if table == "finals" else 0)
        for rows, measurements in measure(self.machine, placements, missing, begin):
            new = self.references.normalise(measurements)
            self.study.record(first + rows, placements[rows], new, first, table)
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
        seconds, outcome, best = measurements.times(np.inf), measurements.outcome.copy(), self.best
        origins = measurements.origins or (None,) * len(measurements)
        for row in np.argsort(seconds, kind="stable").tolist():
            if not seconds[row] < best:
                break
            again = self._elsewhere(self.machine, placements[row], origins[row])
            seconds[row], outcome[row] = again.times(np.inf)[0], again.outcome[0]
            best = min(best, seconds[row])
        return replace(measurements, seconds=seconds, outcome=outcome)

    def _elsewhere(
        self, machine: MeasuresElsewhere, placement: Placement, origin: Origin | None
    ) -> Measurements:
        number, one = self.measured_again, placement[None]
        self.measured_again += 1
        recorded_rows, recorded = self.study.stored_samples(number, one, "again")
        if len(recorded_rows):
            return recorded
        measurements = checked_measurements(
            machine, machine.measure_elsewhere(placement, number, origin), 1
        )
        new = self.references.normalise(measurements)
        self.study.record(np.array([number]), one, new, number, "again")
        return new

    def _report_workers(self) -> None:
        """Report the workers' progress now and then, because a batch may take long."""
        late = self.search.seconds - self.reported_at >= REPORT_SECONDS
        if late and self.search.workers() is not None:
            self.reported_at = self.search.seconds
            self.search.report()
            self._show_figures()

    def _show_figures(self) -> None:
        """Show the search's figures on the workers' own board, if they have one."""
        if isinstance(self.machine, HasWorkers):
            best = {"best_seconds": self.best} if np.isfinite(self.best) else {}
            self.machine.show({**best, **self.search.progress().figures})

    def _count(self, first: int, placements: Placement, measurements: Measurements) -> None:
        self.search.add_measurements(measurements)
        if self.search.learning.on_measured is not None:
            self.search.learning.on_measured(first, measurements)
        seconds = measurements.times(np.inf)
        best = int(np.argmin(seconds))
        if seconds[best] < self.best or self.search.best is None:
            self.best = float(seconds[best])
            self.search.adopt(placements[best], self.order, self.best)
        if self.machine.finalists:
            for placement, duration in zip(placements, seconds.tolist(), strict=True):
                if np.isfinite(duration):
                    self.times.setdefault(placement.tobytes(), []).append(duration)
        self.search.report()

    def _settle(self) -> None:
        """Choose the plan among the finalists by sequential halving (Karnin, Koren and Somekh,
        2013).

        All finalists are measured in turn, then the better half twice as often, until one of two
        is chosen. Only new measurements decide, because the minimum of noisy times is biased.
        """
        finalists, count = self._finalists(), 0
        most = len(finalists)
        seconds = np.empty((most, 0))
        while True:
            for _ in range(most // len(finalists)):
                times = self._measure(count, finalists, "finals").times(np.inf)
                count += len(finalists)
                # (finalists, rounds): one more column per round.
                seconds = np.column_stack((seconds, times))
            # Half of the finalists get twice as many rounds, so the stages cost about the same.
            ranked = np.argsort(_paces(seconds), kind="stable")
            if len(finalists) <= 2:
                break
            ranked = ranked[: (len(finalists) + 1) // 2]
            finalists, seconds = finalists[ranked], seconds[ranked]
        best = ranked[0]
        self.search.adopt(finalists[best], self.order, float(np.median(seconds[best])))

    def _finalists(self) -> Placement:
        """(k, n) finalists: the fastest placements, at most one per `SAMPLES_EACH` samples.

        A machine may be slow for a while. So all placements on one device are finalists whatever
        their times, and so is the first placement that ran if there was a plan to start with.
        """
        ranked = sorted(self.times, key=lambda placement: float(np.median(self.times[placement])))
        fastest = ranked[: min(self.machine.finalists, -(-self.sample_count // SAMPLES_EACH))]
        simple = [placement for placement in self.times if _on_one_device(placement)]
        others = [*list(self.times)[: int(self.has_start)], *simple]
        # A placement that qualifies twice is measured once.
        all_of_them = dict.fromkeys([*fastest, *others])
        return np.array([np.frombuffer(placement, np.int32) for placement in all_of_them])


def _paces(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k,) median over rounds of a placement's seconds relative to the median of its round;
    infinite if it ever failed.

    Times are relative to their round because a machine may be slow for a while.

    Args:
        seconds: (k, rounds) of the placements.
    """
    # Failures become finite, because inf / inf is NaN.
    finite = np.minimum(seconds, FAILED_SECONDS)
    rounds = np.maximum(np.median(finite, axis=0), LEAST_ROUND_SECONDS)
    paces = np.median(finite / rounds, axis=1)
    return np.where(np.isfinite(seconds).all(axis=1), paces, np.inf)


def _on_one_device(placement: bytes) -> bool:
    devices = np.frombuffer(placement, np.int32)
    return bool((devices == devices[0]).all())


def _header(
    search: Search, checked_learner: CheckedLearner, machine: Evaluator, samples: int
) -> dict[str, str]:
    """All settings that decide the samples; a study identifies its search by them."""
    problem, learning = search.problem, search.learning
    costs = {"costs": problem.costs.hash} if problem.costs else {}
    shared = {} if learning.controllers is None else {"controllers": _controllers(learning)}
    learner_name = {} if checked_learner.name is None else {"learner": checked_learner.name}
    return {
        "graph": f"{problem.graph.name} {problem.graph.hash}",
        "cluster": f"{problem.cluster.name} {problem.cluster.hash}",
        "rules": problem.rules.name,
        "unit": problem.graph.unit,
        "method": checked_learner.method,
        "settings": learning.settings,
        "grouping": str(learning.grouping),
        "groups": str(learning.groups),
        "samples": str(samples),
        "seed": str(search.seed),
        "evaluator": machine.name,
        "ops": str(problem.n),
        "devices": str(problem.d),
        "situate": VERSION,
        **costs,
        **shared,
        **learner_name,
    }


def _controllers(learning: Learning) -> str:
    """The number of controllers and their clock, in words."""
    stale = "" if learning.stalest is None else f", at most {learning.stalest} updates stale"
    return f"{learning.controllers}, {learning.clock or 'clock of their own'}{stale}"


def _warn_of_failures(search: Search, method: str) -> None:
    outcomes = np.concatenate([m.outcome for m in search.measurements] or [np.zeros(1, np.uint8)])
    if (outcomes == 0).any():
        return
    kinds = [OUTCOMES[i] for i in np.unique(outcomes)]
    reasons = ", ".join(outcome.replace("_", " ") for outcome in kinds)
    remedies = "; ".join(REMEDIES[outcome] for outcome in kinds)
    warnings.warn(
        f"{method}: none of {len(outcomes)} placements ran ({reasons}), so there was nothing to "
        f"learn from; {remedies}",
        stacklevel=2,
    )
