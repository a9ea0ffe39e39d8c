"""Runs of several methods, one after the other, on one problem."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from situate.cli.learning_options import ComparisonLearningOptions
from situate.cli.names import check_method
from situate.cli.search import Run, check_learners, interruptible
from situate.cli.search_options import SearchBudget
from situate.cli.step import Step, run_step, whole_problem
from situate.cli.terminal import note
from situate.errors import SituateError
from situate.results.result import Result
from situate.slicing.cuts import Cuts
from situate.slicing.shares import Shares
from situate.solvers import LEARNERS, METHODS, OF_PARTS, OF_SLICES

if TYPE_CHECKING:
    from situate.cli.hardware import Hardware


def method_names(text: str | None) -> list[str]:
    """The names between commas, or those of all methods that do not learn; `single` comes first.

    Raises:
        SituateError: a name is empty or unknown.
    """
    if text is None:
        return [name for name in METHODS if name not in LEARNERS]
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise SituateError(f"--methods {text!r}: an empty name: give such as auto,heft")
    for name in names:
        check_method(name)
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        note(f"{name}: appears more than once in --methods; it runs once")
    return list(dict.fromkeys(["single", *names]))


def run_methods(
    step: Step,
    methods: list[str],
    budget: SearchBudget,
    options: ComparisonLearningOptions,
    machine: Hardware | None,
    skip: bool,
) -> list[Run]:
    """One run per method, in the order of `methods`.

    Methods that learn run last, so that errors of the others show early. If planning chooses
    slices, `auto` runs first and the others try the cuts that it tried. Ctrl-C ends the current
    method and leaves out those after it.

    Args:
        skip: leave out methods that do not apply, with a note, methods of slices if the batch is
            whole, and methods of parts if all ops are.
    """
    open_cut = isinstance(step, Cuts)
    graph = whole_problem(step).graph
    if skip and not open_cut and graph.slices is None:
        methods = [method for method in methods if method not in OF_SLICES]
    if skip and graph.cuts is None:
        methods = [method for method in methods if method not in OF_PARTS]
    check_learners(whole_problem(step), methods, budget, options)
    runs: list[Run] = []
    with interruptible() as interrupt:
        # sorted is stable: within a turn methods keep their order.
        for method in sorted(methods, key=partial(_turn, open_cut)):
            own = options.budget(method, methods, budget)
            _add_run(runs, step, method, own, options, machine, skip)
            if interrupt.came:
                remedy = ""
                if options.study:
                    remedy = f"; the same command goes on from {options.study!r}"
                note(f"interrupted during {method}: the methods that follow are left out{remedy}")
                break
    return sorted(runs, key=lambda run: methods.index(run.result.method))


def _turn(open_cut: bool, method: str) -> tuple[bool, bool]:
    """The sort key of a method: learners last, `auto` before those that follow its cuts."""
    return method in LEARNERS, open_cut and method != "auto"


def _add_run(
    runs: list[Run],
    step: Step,
    method: str,
    budget: SearchBudget,
    options: ComparisonLearningOptions,
    machine: Hardware | None,
    skip: bool,
) -> None:
    """Add the run of a method, if it applies and has a plan before Ctrl-C."""
    try:
        study, among = options.study_of(method), _cuts_of_first(runs)
        runs.append(run_step(step, method, budget, options, study, machine, among))
    except SituateError as error:
        if not skip and method != "single":
            raise
        note(f"{method}: left out: {error}")
    except KeyboardInterrupt:
        if not runs:
            raise


def _cuts_of_first(runs: list[Run]) -> list[Shares] | None:
    """The cuts of the batch that the first method planned; None if it planned a single one."""
    choice = runs[0].choice if runs else None
    cuts = [trial.samples for trial in choice.tried if trial.result] if choice else []
    return cuts if len(cuts) > 1 else None


def best_result(results: list[Result]) -> Result:
    """The plan with the best value among those that fit, else the one closest to fitting.

    Raises:
        SituateError: there are no results.
    """
    if not results:
        raise SituateError("no method applies to this problem")
    return min(results, key=lambda result: result.rank)
