"""Methods one after the other on one problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from situate.cli.inputs import check_method
from situate.cli.learning_options import LearningOptions
from situate.cli.run_method import Run, check_learners, run
from situate.cli.search import Budget, interruptible
from situate.cli.terminal import note
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.results.result import Result
from situate.solvers import LEARNERS, METHODS

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
    problem: Problem,
    methods: list[str],
    budget: Budget,
    options: LearningOptions,
    machine: Hardware | None,
    skip: bool,
) -> list[Run]:
    """One run a method; with `skip`, a method that does not apply is left out with a note.

    Methods that learn come last, so that what is amiss with another is said before they take
    their time. Ctrl-C ends the method that runs and leaves out those after it.
    """
    check_learners(problem, methods, budget, options)
    runs: list[Run] = []
    with interruptible() as interrupt:
        for method in sorted(methods, key=lambda method: method in LEARNERS):
            spent = options.budget(method, methods, budget)
            _add(runs, problem, method, spent, options, machine, skip)
            if interrupt.came:
                how = f"; the same command goes on from {options.study!r}" if options.study else ""
                note(f"interrupted during {method}: the methods that follow are left out{how}")
                break
    return sorted(runs, key=lambda run: methods.index(run.result.method))


def _add(
    runs: list[Run],
    problem: Problem,
    method: str,
    budget: Budget,
    options: LearningOptions,
    machine: Hardware | None,
    skip: bool,
) -> None:
    """The run of a method, if it applies and found a plan before Ctrl-C."""
    try:
        runs.append(
            run(
                problem,
                method,
                budget,
                options,
                options.study_of(method),
                machine,
            )
        )
    except SituateError as error:
        if not skip and method != "single":
            raise
        note(f"{method}: left out: {error}")
    except KeyboardInterrupt:
        if not runs:
            raise


def best_of(results: list[Result]) -> Result:
    """The best value among plans that fit, else the plan that is closest to fitting."""
    if not results:
        raise SituateError("no method applies to this problem")
    return min(results, key=lambda result: result.rank)
