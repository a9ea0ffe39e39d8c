"""Methods one after the other on one problem."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from situate.cli.inputs import check_method
from situate.cli.learning_options import LearningOptions
from situate.cli.run_method import Run, check_learners
from situate.cli.search import Budget, interruptible
from situate.cli.slicing import Step, problem_of, run_step
from situate.cli.terminal import note
from situate.errors import SituateError
from situate.results.result import Result
from situate.slicing.cuts import Cuts
from situate.slicing.shares import Shares
from situate.solvers import LEARNERS, METHODS, OF_SLICES

if TYPE_CHECKING:
    from situate.cli.hardware import Hardware


def chosen_of(methods: str | None) -> list[str]:
    """The methods named, or all that do not learn; `single` comes first."""
    if methods is None:
        return [name for name in METHODS if name not in LEARNERS]
    names = [name.strip() for name in methods.split(",")]
    if not all(names):
        raise SituateError(f"--methods {methods!r}: an empty name: give such as auto,heft")
    for name in names:
        check_method(name)
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        note(f"{name}: named more than once in --methods; it runs once")
    return list(dict.fromkeys(["single", *names]))


def compared(
    step: Step,
    methods: list[str],
    budget: Budget,
    options: LearningOptions,
    machine: Hardware | None,
    skip: bool,
) -> list[Run]:
    """One run a method; with `skip`, a method that does not apply is left out with a note, and one
    of slices without where there are none.

    Methods that learn come last, so that what is amiss with another is said before they take
    their time. Where slices are to be chosen, `auto` comes first, and the others are tried with
    those that it tried. Ctrl-C ends the method that runs and leaves out those after it.
    """
    cut = isinstance(step, Cuts)
    if skip and not cut and problem_of(step).graph.slices is None:
        methods = [method for method in methods if method not in OF_SLICES]
    check_learners(problem_of(step), methods, budget, options)
    runs: list[Run] = []
    with interruptible() as interrupt:
        for method in sorted(methods, key=partial(_turn, cut)):
            spent = options.budget(method, methods, budget)
            _add(runs, step, method, spent, options, machine, skip)
            if interrupt.came:
                how = f"; the same command goes on from {options.study!r}" if options.study else ""
                note(f"interrupted during {method}: the methods that follow are left out{how}")
                break
    return sorted(runs, key=lambda run: methods.index(run.result.method))


def _turn(cut: bool, method: str) -> tuple[bool, bool]:
    """The key that orders methods by when they run."""
    return method in LEARNERS, cut and method != "auto"


def _add(
    runs: list[Run],
    step: Step,
    method: str,
    budget: Budget,
    options: LearningOptions,
    machine: Hardware | None,
    skip: bool,
) -> None:
    """The run of a method, if it applies and found a plan before Ctrl-C."""
    try:
        study, among = options.study_of(method), _planned(runs)
        runs.append(run_step(step, method, budget, options, study, machine, among))
    except SituateError as error:
        if not skip and method != "single":
            raise
        note(f"{method}: left out: {error}")
    except KeyboardInterrupt:
        if not runs:
            raise


def _planned(runs: list[Run]) -> list[Shares] | None:
    """The ways of cutting the batch that the first method planned; None where it cut none."""
    choice = runs[0].choice if runs else None
    planned = [tried.samples for tried in choice.tried if tried.result] if choice else []
    return planned if len(planned) > 1 else None


def best_of(results: list[Result]) -> Result:
    """The best value among plans that fit, else the plan that is closest to fitting."""
    if not results:
        raise SituateError("no method applies to this problem")
    return min(results, key=lambda result: result.rank)
