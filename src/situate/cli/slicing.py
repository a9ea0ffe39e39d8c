"""The step that a command plans, whole, in slices as told, or in slices that it chooses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from situate.cli.inputs import read_problem, recompute_of, slices_of
from situate.cli.learning_options import LearningOptions
from situate.cli.run_method import Run, run
from situate.cli.search import Budget
from situate.cli.terminal import note, working
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.recompute import is_auto
from situate.data.slices import AUTO, AutoSlices, Slices, parse_auto
from situate.errors import SituateError
from situate.model import find_model, find_samples
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
"""One problem, or that of the whole batch with those of its slices."""


def read_step(
    model: str,
    cluster: str | None,
    methods: Sequence[str],
    slices: str | None,
    slice_dim: Sequence[str] | None,
    slice_loss: str | None,
    batch_norm: str | None,
    sums: str | None,
    replicas: str | None,
    once: Sequence[str] | None,
    *,
    objective: str,
    rules: str | None,
    optimizer: str | None,
    dim: Sequence[str] | None,
    costs: str | None,
    recompute: str | None,
    check: bool = True,
) -> Step:
    """The step that the options of a command which plans stand for; raises for a method that takes
    no slices which are chosen."""
    again = recompute_of(recompute)
    read = partial(
        read_problem,
        model,
        cluster,
        objective=objective,
        rules=rules,
        optimizer=optimizer,
        dim=dim,
        costs=costs,
        recompute=again,
        check=check,
    )
    if slices != AUTO:
        return read(
            slices=slices_of(slices, slice_dim, slice_loss, batch_norm, sums, replicas, once)
        )
    if replicas or once:
        raise SituateError(
            f"--{'replicas' if replicas else 'once'}: says which slices read a copy: give --slices "
            "a number, such as the one that auto chose"
        )
    if sums == AUTO:
        raise SituateError(
            "--sums auto: is chosen for one cut of the batch: give --slices a number, such as the "
            "one that auto chose, or --sums chain or tree"
        )
    if is_auto(again):
        raise SituateError(
            "--recompute auto: is chosen for one cut of the batch: give --slices a number, such as "
            "the one that auto chose, or --recompute names of modules, or all"
        )
    for method in methods:
        check_method(method)
    options = parse_auto(slice_dim, slice_loss, batch_norm, sums)
    return _cuts(model, optimizer, read, options, again, check)


def _cuts(
    model: str,
    optimizer: str | None,
    read: Callable[..., Problem],
    told: AutoSlices,
    recompute: Sequence[str],
    check: bool,
) -> Cuts:
    from situate.torch_capture import Captures

    captures = Captures(check)
    whole = read(captures=captures)
    signed = whole.costs is not None

    def capture(slices: Slices) -> Graph:
        with working(f"capturing {model} in slices {slices}"), redirect_stdout(sys.stderr):
            return find_model(
                model,
                optimizer,
                signed=signed,
                slices=slices,
                recompute=recompute,
                captures=captures,
            )

    def count() -> int:
        with working(f"building {model}"), redirect_stdout(sys.stderr):
            return find_samples(model, told.axes, captures)

    return Cuts(whole, told, count, capture)


def problem_of(step: Step) -> Problem:
    """The problem, or that of the whole batch."""
    return step.whole if isinstance(step, Cuts) else step


def run_step(
    step: Step,
    method: str,
    budget: Budget,
    options: LearningOptions,
    study: Path | None = None,
    machine: Hardware | None = None,
    among: Sequence[Shares] | None = None,
) -> Run:
    """The best plan of a method, as `run` has it; where slices are to be chosen, in those that suit
    it best, of all or of some."""
    if isinstance(step, Problem):
        return run(step, method, budget, options, study, machine)

    def search(problem: Problem, seconds: float | None, evaluations: int | None) -> Result:
        limits = Budget(seconds, evaluations, budget.seed, budget.threads)
        return run(problem, method, limits, options, None).result

    choice = choose(step, search, budget.time_limit, budget.evaluations, among)
    found = choice.result
    improvements = [(after, value) for _, after, value in found.history]
    curve = Curve.of_improvements(method, found.evaluations, improvements)
    return Run(found, curve, choice=choice)


def say_of_slices(choice: Choice | None) -> None:
    """Say why the batch is whole where it cannot be cut, and what the chosen slices change."""
    if choice is None:
        return
    if choice.uncut:
        note(f"not cut into slices: {choice.uncut}")
    graph = choice.result.problem.graph
    for warning in graph.warnings if graph.slices else ():
        note(f"warning: {warning}")
