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
from situate.evaluators.checks import checked
from situate.evaluators.measurements import (
    OUTCOMES,
    Evaluator,
    HasWorkers,
    Measurements,
    MeasuresElsewhere,
    Origin,
)
from situate.evaluators.references import References
from situate.evaluators.simulated import SimulatedMachine
from situate.evaluators.steps import CountsSteps
from situate.evaluators.workers.places import Place
from situate.solvers.learned.checks import Asking, check_evaluator, measure
from situate.solvers.learned.learner import Learner, Learning, MakeLearner, State
from situate.solvers.learned.paper_steps import PAPER_STEPS
from situate.solvers.registry import METHODS
from situate.solvers.search import Search
from situate.study.file import StudyFile
from situate.study.no_study import NoStudy
from situate.study.samples import Of
from situate.version import VERSION

if TYPE_CHECKING:
    from situate.solvers.learned.asynchronous.controllers import Controllers

SAMPLES = 2400
"""Placements measured where no number of evaluations is given (Post, section 4)."""

SAMPLES_EACH = 8
"""For one placement that is measured again in the end, four to five times in the mean."""

LEAST_ROUND_SECONDS, FAILED_SECONDS = 1e-9, 1e100
"""Seconds that a round of finalists counts as at least, and that one which failed counts as."""

PLANNING_EVALUATIONS = 5000
"""Evaluations of `auto` for the plan that a machine measures first: seconds on a thousand ops."""

REPORT_SECONDS = 0.2
"""Seconds between two reports on workers."""

REMEDIES = {
    "out_of_memory": "go on with more or larger devices, with another grouping, or with method "
    "'auto', which looks for a plan that fits first",
    "crash": "run a plan of one device first, to see what stops it",
    "timeout": "give a measurement more time",
    "nan": "run a plan of one device first, to see where its loss ceases to be a number",
}
"""Advice where no placement ran, by outcome."""


def learn(search: Search, method: str, make: MakeLearner, run: type[Run] | None = None) -> None:
    """Ask, measure, keep, tell, until the budget ends; the best placement measured is the plan.

    Args:
        run: the class of the run; None for `Run`.

    Raises:
        SituateError: an objective other than `time`; a study of another problem or method; answers
            of the learner or the evaluator that are none.
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
    learner = _made(search, method, make, learning, samples)
    asking = Asking(method, problem, learner)
    search.knows = asking.knows
    header = _header(search, asking, machine, samples)
    with StudyFile.open(learning.study, header) as opened:
        study = opened
        if learning.controllers is not None:
            search.asynchrony = cast("Controllers", learner).asynchrony
        run(search, asking, machine, study, learning.start is not None).until(samples)
    _warn_of_failures(search, method)


def _made(
    search: Search, method: str, make: MakeLearner, learning: Learning, samples: int
) -> Learner:
    """The learner, or several controllers of one."""
    if learning.controllers is None:
        return make(search.problem, learning, samples, search.seed)
    if method not in METHODS or not METHODS[method].asynchronous:
        known = ", ".join(name for name, known in METHODS.items() if known.asynchronous)
        raise SituateError(
            f"controllers: method {method!r} has one, which waits for what it asked for; those "
            f"that learn asynchronously: {known}"
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
    """The evaluator, with as many workers as there are to be."""
    given, workers = search.learning.evaluator, search.learning.workers
    machine = _simulated(search, search.threads) if given is None else given
    check_evaluator(machine)
    machine = _as_papers_measure(search, method, machine)
    if workers is None:
        if isinstance(machine, HasWorkers):
            search.workers = machine.progress
        yield machine
        return
    copied, here = machine, None
    if given is None:
        copied, here = _as_papers_measure(search, method, _simulated(search, threads=1)), machine
    with Place.parse(workers).machine(copied, here) as shared:
        search.workers = shared.progress
        yield shared
        if failures := shared.counts.failures_text():
            warnings.warn(failures, stacklevel=2)


def _simulated(search: Search, threads: int) -> SimulatedMachine:
    return SimulatedMachine(search.problem, search.learning.noise, search.seed, threads)


def _as_papers_measure(search: Search, method: str, machine: Evaluator) -> Evaluator:
    """In `paper` settings the machine that takes the steps of the method's paper, if it can."""
    steps = PAPER_STEPS.get(method) if search.learning.settings == "paper" else None
    return machine.by(steps) if steps and isinstance(machine, CountsSteps) else machine


def _start(search: Search, study: StudyFile | NoStudy) -> Placement:
    """The placement that a machine other than the simulated one measures first where costs were
    measured: the plan of `auto`, and if the search was interrupted the plan of then, for its time
    may be limited."""
    held = study.first()
    if held is not None:
        return held
    planning = search.beside(PLANNING_EVALUATIONS)
    METHODS["auto"].run(planning)
    assert planning.best is not None
    return planning.best.placement


class Run:
    """One learner against one machine."""

    def __init__(
        self,
        search: Search,
        asking: Asking,
        machine: Evaluator,
        study: StudyFile | NoStudy,
        planned: bool,
    ) -> None:
        self.search, self.machine, self.study = search, machine, study
        self.asking, self.learner = asking, asking.learner
        self.order = np.array(search.problem.graph.order, np.int32)
        self.planned = planned
        self.best = np.inf
        self.done = 0
        self.measured_again = 0
        self.references = References(study.workers)
        self.reported_at = 0.0
        self.times: dict[bytes, list[float]] = {}

    def until(self, samples: int) -> None:
        resumed = self._resume()
        self._learn(samples)
        if self.done > resumed:
            self._keep(now=True)
        if self.times:
            # What is measured last is kept of a complete study alone: a longer one has others.
            self.study = self.study if self.done == samples else NoStudy()
            self._settle()

    def _learn(self, samples: int) -> None:
        while self.done < samples and not (self.done and self._finished()):
            self._step(min(self.asking.batch(), samples - self.done))

    def _keep(self, now: bool = False) -> None:
        self.study.keep(self.done, self.asking.state, now)

    def _finished(self) -> bool:
        """True where the budget is spent or the bound met, which says nothing of another machine
        than the simulated one."""
        simulated = self.search.learning.evaluator is None
        return self.search.finished() if simulated else self.search.left() <= 0

    def _resume(self) -> int:
        """Go on from the last checkpoint, the number of samples before which is returned; what
        was measured of those counts as it did then."""
        self.done, state = self.study.checkpoint()
        for first, placements, measurements in self.study.batches(self.done):
            self.asking.check(placements, f"{self.search.learning.study}: sample", first)
            self._count(first, placements, self._confirmed(placements, measurements))
        if state is not None:
            self._restore(state)
        return self.done

    def _restore(self, state: State) -> None:
        try:
            self.learner.restore(state)
        except (ValueError, OverflowError) as error:  # ours, and of numbers that are none
            raise SituateError(
                f"{self.search.learning.study}: {error}; give another file to start again"
            ) from None

    def _step(self, k: int) -> None:
        begin = self.search.seconds
        placements = self.asking.ask(self.done, k)
        measurements = self._confirmed(placements, self._measure(self.done, placements))
        self._count(self.done, placements, measurements)
        self.learner.tell(placements, measurements)
        self.done += k
        self._keep()
        self.search.took(self.search.seconds - begin)

    def _measure(self, first: int, placements: Placement, of: Of = "samples") -> Measurements:
        """Measurements of these samples: those that the study holds, the rest from the machine,
        each recorded as it comes, so that a search that is killed loses no other."""
        held, known = self.study.stored_samples(first, placements, of)
        seconds, outcome = np.empty(len(placements)), np.empty(len(placements), np.uint8)
        seconds[held], outcome[held] = known.seconds, known.outcome
        origins = dict(zip(held.tolist(), known.origins, strict=False))
        left = np.setdiff1d(np.arange(len(placements)), held)
        begin = first + (self.done if of == "finals" else 0)
        for rows, found in measure(self.machine, placements, left, begin):
            new = self.references.compared(found)
            self.study.record(first + rows, placements[rows], new, first, of)
            seconds[rows], outcome[rows] = new.seconds, new.outcome
            origins |= dict(zip(rows.tolist(), new.origins, strict=False))
            self._report_workers()
        by = tuple(map(origins.get, range(len(placements)))) if origins else ()
        return Measurements(seconds, outcome, by)

    def _confirmed(self, placements: Placement, measured: Measurements) -> Measurements:
        """Measurements in which those that would be the best so far are what another worker
        measured since: they were chosen for being small."""
        if not isinstance(self.machine, MeasuresElsewhere):
            return measured
        seconds, outcome, best = measured.times(np.inf), measured.outcome.copy(), self.best
        origins = measured.origins or (None,) * len(measured)
        for row in np.argsort(seconds, kind="stable").tolist():
            if not seconds[row] < best:
                break
            again = self._elsewhere(self.machine, placements[row], origins[row])
            seconds[row], outcome[row] = again.times(np.inf)[0], again.outcome[0]
            best = min(best, seconds[row])
        return replace(measured, seconds=seconds, outcome=outcome)

    def _elsewhere(
        self, machine: MeasuresElsewhere, placement: Placement, origin: Origin | None
    ) -> Measurements:
        number, one = self.measured_again, placement[None]
        self.measured_again += 1
        held, known = self.study.stored_samples(number, one, "again")
        if len(held):
            return known
        found = checked(machine, machine.measure_elsewhere(placement, number, origin), 1)
        new = self.references.compared(found)
        self.study.record(np.array([number]), one, new, number, "again")
        return new

    def _report_workers(self) -> None:
        """Tell of the workers now and then while they measure a batch, which may take long."""
        late = self.search.seconds - self.reported_at >= REPORT_SECONDS
        if late and self.search.workers() is not None:
            self.reported_at = self.search.seconds
            self.search.report()
            self._show_figures()

    def _show_figures(self) -> None:
        """Show on the workers' own board, if they have one, how the search does."""
        if isinstance(self.machine, HasWorkers):
            best = {"best_seconds": self.best} if np.isfinite(self.best) else {}
            self.machine.show({**best, **self.search.progress().figures})

    def _count(self, first: int, placements: Placement, measurements: Measurements) -> None:
        self.search.measured(measurements)
        if self.search.learning.on_measured is not None:
            self.search.learning.on_measured(first, measurements)
        seconds = measurements.times(np.inf)
        best = int(np.argmin(seconds))
        if seconds[best] < self.best or self.search.best is None:
            self.best = float(seconds[best])
            self.search.adopt(placements[best], self.order, self.best)
        if self.machine.finalists:
            for placement, taken in zip(placements, seconds.tolist(), strict=True):
                if np.isfinite(taken):
                    self.times.setdefault(placement.tobytes(), []).append(taken)
        self.search.report()

    def _settle(self) -> None:
        """Measure the placements that took least again: all of them in turn, then the better half
        twice as often, until of two one is chosen (sequential halving, Karnin, Koren and Somekh,
        2013). What decides was measured since: of many noisy times the smallest is a lucky one."""
        left, measured = self._finalists(), 0
        most = len(left)
        seconds = np.empty((most, 0))
        while True:
            for _ in range(most // len(left)):
                found = self._measure(measured, left, "finals").times(np.inf)
                measured += len(left)
                # (left, rounds) grows by a column a round.
                seconds = np.column_stack((seconds, found))
            # Half of them go on to twice as many rounds, so that every round costs about the same.
            ranked = np.argsort(_paces(seconds), kind="stable")
            if len(left) <= 2:
                break
            ranked = ranked[: (len(left) + 1) // 2]
            left, seconds = left[ranked], seconds[ranked]
        best = ranked[0]
        self.search.adopt(left[best], self.order, float(np.median(seconds[best])))

    def _finalists(self) -> Placement:
        """(k, n) those that took least, at most one of `SAMPLES_EACH`; and whatever they took, for
        a machine may be slow for a while: all on one device, and where there was a plan to start
        with the first that ran."""
        ranked = sorted(self.times, key=lambda placement: float(np.median(self.times[placement])))
        chosen = ranked[: min(self.machine.finalists, -(-self.done // SAMPLES_EACH))]
        simple = [placement for placement in self.times if _on_one_device(placement)]
        known = [*list(self.times)[: int(self.planned)], *simple]
        # A placement that is here for two reasons is measured once.
        all_of_them = dict.fromkeys([*chosen, *known])
        return np.array([np.frombuffer(placement, np.int32) for placement in all_of_them])


def _paces(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k,) of placements measured in rounds (k, rounds): the median of what each took over what all
    took in its round, for a machine may be slow for a while; infinite if it ever failed."""
    # Finite, for an infinite time over an infinite median is no number.
    taken = np.minimum(seconds, FAILED_SECONDS)
    rounds = np.maximum(np.median(taken, axis=0), LEAST_ROUND_SECONDS)
    paces = np.median(taken / rounds, axis=1)
    return np.where(np.isfinite(seconds).all(axis=1), paces, np.inf)


def _on_one_device(placement: bytes) -> bool:
    devices = np.frombuffer(placement, np.int32)
    return bool((devices == devices[0]).all())


def _header(search: Search, asking: Asking, machine: Evaluator, samples: int) -> dict[str, str]:
    """Everything that decides the samples to come, by which a study knows its search."""
    problem, learning = search.problem, search.learning
    costs = {"costs": problem.costs.hash} if problem.costs else {}
    shared = {} if learning.controllers is None else {"controllers": _controllers(learning)}
    named = {} if asking.name is None else {"learner": asking.name}
    return {
        "graph": f"{problem.graph.name} {problem.graph.hash}",
        "cluster": f"{problem.cluster.name} {problem.cluster.hash}",
        "rules": problem.rules.name,
        "unit": problem.graph.unit,
        "method": asking.method,
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
        **named,
    }


def _controllers(learning: Learning) -> str:
    """Their number and their clock, in words."""
    stale = "" if learning.stalest is None else f", at most {learning.stalest} updates stale"
    return f"{learning.controllers}, {learning.clock or 'clock of their own'}{stale}"


def _warn_of_failures(search: Search, method: str) -> None:
    outcomes = np.concatenate([m.outcome for m in search.measurements] or [np.zeros(1, np.uint8)])
    if (outcomes == 0).any():
        return
    found = [OUTCOMES[i] for i in np.unique(outcomes)]
    reasons = ", ".join(outcome.replace("_", " ") for outcome in found)
    remedies = "; ".join(REMEDIES[outcome] for outcome in found)
    warnings.warn(
        f"{method}: none of {len(outcomes)} placements ran ({reasons}), so there was nothing to "
        f"learn from; {remedies}",
        stacklevel=2,
    )
