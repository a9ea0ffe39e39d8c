"""One run of a method for a command, with its progress and its notes on stderr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from situate.cli.learning_options import LearningOptions
from situate.cli.progress import SearchProgress
from situate.cli.search import Budget, search
from situate.cli.tensorboard import tensorboard
from situate.cli.terminal import note
from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.report.learning_curve import Curve
from situate.report.text import plural
from situate.report.units import time_text
from situate.results.choice import Choice
from situate.results.result import Result
from situate.solvers import LEARNERS, METHODS
from situate.solvers.learned.driver import SAMPLES
from situate.solvers.learned.rewards import failure_seconds

if TYPE_CHECKING:
    from situate.cli.hardware import Hardware


@dataclass(frozen=True, eq=False)
class Run:
    """The result of a method, and its learning curve.

    Attributes:
        complete: all that was to be written meanwhile was.
        choice: of slices, where they were to be chosen.
    """

    result: Result
    curve: Curve
    complete: bool = True
    choice: Choice | None = None


def run(
    problem: Problem,
    method: str,
    budget: Budget,
    options: LearningOptions,
    study: Path | None,
    machine: Hardware | None = None,
) -> Run:
    """The best plan of a method within `budget`.

    Args:
        study: where its measurements are kept, if it learns.
        machine: what it learns from; None for the simulator.
    """
    if method not in LEARNERS:
        progress = SearchProgress(problem, method)
        found = search(problem, method, budget, options.of_search(method), progress)
        return Run(found, progress.curve())
    progress = SearchProgress(problem, method, budget.evaluations)
    folder = Path(options.tensorboard, method) if options.tensorboard else None
    with tensorboard(folder) as scalars:

        def measured(first: int, measurements: Measurements) -> None:
            progress.measured(first, measurements)
            scalars.measured(first, measurements, progress.figures)

        learning = replace(options.learning(study, machine), on_measured=measured)
        result = search(problem, method, budget, learning, progress)
    _say_of_failures(result)
    _say_of_controllers(result)
    _say_of_time(result, budget, study)
    return Run(result, progress.curve(), scalars.complete)


def check_learners(
    problem: Problem, methods: Sequence[str], budget: Budget, options: LearningOptions
) -> None:
    """Make every learner once: what is amiss with one is said before any takes its time."""
    for method in methods:
        if method in LEARNERS:
            make = METHODS[method].learner()
            samples = options.budget(method, methods, budget).evaluations or SAMPLES
            make(problem, options.learning(), samples, budget.seed)


def _say_of_failures(result: Result) -> None:
    """Some failed; where all did, the driver says so."""
    failed = int(np.isinf(result.samples).sum())
    if 0 < failed < len(result.samples):
        counted = time_text(failure_seconds(result.problem), result.problem.graph.unit)
        note(
            f"{result.method}: {failed:,} of {plural(len(result.samples), 'placement')} did not "
            f"run; each counted as {counted}"
        )


def _say_of_controllers(result: Result) -> None:
    if result.asynchrony is None:
        return
    course = result.asynchrony
    left = f", of which {course.dropped} were too old" if course.dropped else ""
    note(
        f"{result.method}: {plural(course.updates, 'update')}, each of a policy "
        f"{course.mean_staleness:.1f} updates old on average{left}, in "
        f"{time_text(course.seconds)} of the {course.clock} clock"
    )


ENDED_BY_TIME_SHARE = 0.9
"""Part of a time limit after which a search has no time for another batch of samples."""


def _say_of_time(result: Result, budget: Budget, study: Path | None) -> None:
    done, wanted = len(result.samples), budget.evaluations or 0
    if budget.time_limit is None:
        return
    if done < wanted and result.seconds >= ENDED_BY_TIME_SHARE * budget.time_limit:
        note(
            f"{result.method}: --time-limit ended it after {done:,} of {wanted:,} samples; "
            f"{resumption(study)}"
        )


def resumption(study: Path | None) -> str:
    """The way to go on with a search that ended early."""
    if study is None:
        return "with --study it could go on from there"
    return f"the same command goes on from {str(study)!r}"
