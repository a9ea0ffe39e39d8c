"""Modules that run again where a cluster's memory is short, as `--recompute auto` asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout

from situate.cli.terminal import note, working
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.recompute import recomputed_modules
from situate.data.slices import Slices
from situate.model import trace_model
from situate.report.units import size_text
from situate.solvers.recompute import with_recompute


def chosen_problem(
    model: str,
    optimizer: str | None,
    slices: Slices | None,
    problem_of: Callable[[Graph], Problem],
) -> Problem:
    """The problem of a model's step with the modules that run again chosen for it; says which.

    Args:
        problem_of: makes the problem of a graph.
    """
    with working(f"reading {model}"), redirect_stdout(sys.stderr):
        step = trace_model(model, optimizer, slices)
    with working("choosing modules that run again"):
        problem = with_recompute(lambda modules: problem_of(step.graph(modules)))
    for warning in problem.graph.warnings:
        note(f"warning: {warning}")
    note(_said(problem))
    return problem


def _said(problem: Problem) -> str:
    modules = recomputed_modules(problem.graph)
    if not modules:
        return "recompute: no module runs again, which would gain nothing"
    named = ", ".join(each.module for each in modules)
    freed = size_text(sum(each.freed for each in modules))
    return f"recompute: {named} run again, so that {freed} are not kept for the backward pass"
