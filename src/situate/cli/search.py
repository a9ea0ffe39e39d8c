"""The run of a method at a terminal: its progress, its notes on stderr, and Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np

from situate.cli.learning_options import LearningOptions
from situate.cli.live.progress_file import progress_file
from situate.cli.progress import SearchProgress, tensorboard
from situate.cli.search_options import SearchBudget
from situate.cli.terminal import note, working
from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.report.learning_curve import Curve
from situate.report.text import plural
from situate.report.units import time_text
from situate.results.choice import Choice
from situate.results.result import Overtime, Progress, Result
from situate.solvers import LEARNERS, METHODS, solve
from situate.solvers.learned.driver import SAMPLES
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.rewards import failure_seconds

if TYPE_CHECKING:
    from situate.cli.hardware import Hardware

OVERTIME: dict[Overtime, str] = {
    "first plan": "{0}: the first plan took longer than --time-limit {1:g}; it is the answer, "
    "after {2:.1f} s",
    "no plan": "{0}: no plan fitted when --time-limit {1:g} was over, nor after {2:.1f} s",
}
"""Notes of searches beyond their limit: the method, the limit, the seconds."""

TIME_LIMIT_SHARE = 0.9
"""Share of a time limit after which a learner begins no further batch of samples."""


@dataclass(frozen=True, eq=False)
class Run:
    """The run of a method.

    Attributes:
        result: of the method.
        curve: its learning curve.
        complete: False if TensorBoard logs could not be written to the end.
        choice: of slices, if planning chose them.
    """

    result: Result
    curve: Curve
    complete: bool = True
    choice: Choice | None = None


def run_method(
    problem: Problem,
    method: str,
    budget: SearchBudget,
    options: LearningOptions,
    study: Path | None = None,
    machine: Hardware | None = None,
) -> Run:
    """The best plan of a method within `budget`.

    Args:
        study: records the measurements of a method that learns.
        machine: measures its placements; None for the simulator.
    """
    if method not in LEARNERS:
        progress = SearchProgress(problem, method)
        result = _search(problem, method, budget, options.of_search(method), progress)
        return Run(result, progress.curve())
    progress = SearchProgress(problem, method, budget.evaluations)
    folder = Path(options.tensorboard, method) if options.tensorboard else None
    with tensorboard(folder) as scalars:

        def record(first: int, measurements: Measurements) -> None:
            progress.record(first, measurements)
            scalars.record(first, measurements, progress.figures)

        learning = replace(options.learning(study, machine), on_measured=record)
        result = _search(problem, method, budget, learning, progress)
    _note_failures(result)
    _note_asynchrony(result)
    _note_time_limit(result, budget, study)
    return Run(result, progress.curve(), scalars.complete)


def _search(
    problem: Problem,
    method: str,
    budget: SearchBudget,
    learning: Learning,
    progress: SearchProgress,
) -> Result:
    task = f"{method}: searching; Ctrl-C keeps the best plan so far"
    with progress_file(budget.progress, problem, method) as file, working(task) as show:

        def report(state: Progress) -> None:
            file.report(state)
            show(progress.update(state))

        result = solve(
            problem,
            method,
            time_limit=budget.time_limit,
            evaluations=budget.evaluations,
            seed=budget.seed,
            threads=budget.threads,
            on_progress=report,
            learning=learning,
        )
        file.end(result)
    if result.overtime is not None and budget.time_limit is not None:
        note(OVERTIME[result.overtime].format(method, budget.time_limit, result.seconds))
    return result


def check_learners(
    problem: Problem, methods: Sequence[str], budget: SearchBudget, options: LearningOptions
) -> None:
    """Construct every learner, so that bad settings show before any method runs.

    Raises:
        SituateError: a learner cannot learn this problem with its settings.
    """
    for method in methods:
        if method in LEARNERS:
            make = METHODS[method].learner()
            samples = options.budget(method, methods, budget).evaluations or SAMPLES
            make(problem, options.learning(), samples, budget.seed)


def _note_failures(result: Result) -> None:
    """Report failed samples, unless all failed, which the driver reports."""
    # A failed sample has infinite seconds.
    failed = int(np.isinf(result.samples).sum())
    if 0 < failed < len(result.samples):
        penalty = time_text(failure_seconds(result.problem), result.problem.graph.unit)
        note(
            f"{result.method}: {failed:,} of {plural(len(result.samples), 'placement')} did not "
            f"run; each counted as {penalty}"
        )


def _note_asynchrony(result: Result) -> None:
    if result.asynchrony is None:
        return
    course = result.asynchrony
    dropped = f", of which {course.dropped} were too old" if course.dropped else ""
    note(
        f"{result.method}: {plural(course.updates, 'update')}, each of a policy "
        f"{course.mean_staleness:.1f} updates old on average{dropped}, in "
        f"{time_text(course.seconds)} of the {course.clock} clock"
    )


def _note_time_limit(result: Result, budget: SearchBudget, study: Path | None) -> None:
    if budget.time_limit is None:
        return
    samples, total = len(result.samples), budget.evaluations or 0
    if samples < total and result.seconds >= TIME_LIMIT_SHARE * budget.time_limit:
        note(
            f"{result.method}: --time-limit ended it after {samples:,} of {total:,} samples; "
            f"{resumption(study)}"
        )


def resumption(study: Path | None) -> str:
    """The way to resume a search that ended early."""
    if study is None:
        return "with --study it could go on from there"
    return f"the same command goes on from {str(study)!r}"


@dataclass
class Interrupt:
    """A flag that Ctrl-C sets."""

    came: bool = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Remembers Ctrl-C, by which a search stops with its best plan so far."""
    interrupt = Interrupt()

    def remember(number: int, frame: FrameType | None) -> None:
        # `solve` catches it and returns its incumbent; the flag tells the command.
        interrupt.came = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
