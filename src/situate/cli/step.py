"""The step that a command plans: one problem, or a choice among ways of cutting its batch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from situate.cli.inputs import read_problem
from situate.cli.learning_options import LearningOptions
from situate.cli.search import Run, run_method
from situate.cli.search_options import ProblemOptions, SearchBudget
from situate.cli.step_options import AUTO, StepOptions
from situate.cli.terminal import note, working
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.model import count_samples, load_graph
from situate.report.learning_curve import Curve
from situate.results.choice import Choice
from situate.results.result import Result
from situate.slicing import check_method
from situate.slicing.choice import choose
from situate.slicing.cuts import Cuts
from situate.slicing.shares import Shares

if TYPE_CHECKING:
    from situate.cli.hardware import Hardware

Step = Problem | Cuts
"""A problem, or the problem of the whole batch with those of its slices."""


def read_step(
    model: str, methods: Sequence[str], options: ProblemOptions, step: StepOptions
) -> Step:
    """The step that `methods` plan.

    Raises:
        SituateError: as `read_problem`; or planning chooses slices and a method learns.
    """
    if step.cut.slices != AUTO:
        return read_problem(model, options, step.capture())
    for method in methods:
        check_method(method)
    return _cuts(model, options, step)


def _cuts(model: str, options: ProblemOptions, step: StepOptions) -> Cuts:
    from situate.torch_capture import Captures

    capture, rules = step.capture(), step.cut.open_slices()
    # All cuts share one build of the model, and one trace for each size of a slice.
    captures = Captures(capture.check_slices)
    whole = read_problem(model, options, capture, captures)
    signed = replace(capture, signed=whole.costs is not None)

    def in_slices(slices: Slices) -> Graph:
        with working(f"capturing {model} in slices {slices}"), redirect_stdout(sys.stderr):
            return load_graph(model, replace(signed, slices=slices), captures)

    def count() -> int:
        with working(f"building {model}"), redirect_stdout(sys.stderr):
            return count_samples(model, rules.axes, captures)

    return Cuts(whole, rules, count, in_slices)


def whole_problem(step: Step) -> Problem:
    """The problem of the whole batch."""
    return step.whole if isinstance(step, Cuts) else step


def run_step(
    step: Step,
    method: str,
    budget: SearchBudget,
    options: LearningOptions,
    study: Path | None = None,
    machine: Hardware | None = None,
    among: Sequence[Shares] | None = None,
) -> Run:
    """The best plan of a method, as `run_method` returns it.

    Args:
        among: the ways of cutting the batch to try; None for those that suit the method.
    """
    if isinstance(step, Problem):
        return run_method(step, method, budget, options, study, machine)

    def search(problem: Problem, time_limit: float | None, evaluations: int | None) -> Result:
        part = replace(budget, time_limit=time_limit, evaluations=evaluations)
        return run_method(problem, method, part, options).result

    choice = choose(step, search, budget.time_limit, budget.evaluations, among)
    result = choice.result
    improvements = [(evaluations, value) for _, evaluations, value in result.history]
    curve = Curve.of_improvements(method, result.evaluations, improvements)
    return Run(result, curve, choice=choice)


def print_slice_summary(choice: Choice | None) -> None:
    """Print why the batch stays whole, or the warnings of the slices that planning chose."""
    if choice is None:
        return
    if choice.uncut:
        note(f"not cut into slices: {choice.uncut}")
    graph = choice.result.problem.graph
    for warning in graph.warnings if graph.slices else ():
        note(f"warning: {warning}")
