"""Choices that options leave to planning: modules that run again, the order of sums, parameters
with a single copy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout

import msgspec

from situate.cli.terminal import note, working
from situate.data.capture_options import CaptureOptions
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.recompute import recomputed_modules
from situate.data.replicas import replicated
from situate.data.slices import AUTO, Slices, Sums
from situate.model import trace_model
from situate.report.units import size_text


def closed(slices: Slices | None) -> Slices | None:
    """The slices of the first capture, in which choices have their default."""
    if slices is None:
        return None
    once = () if slices.once == (AUTO,) else slices.once
    sums: Sums = "chain" if slices.sums == AUTO else slices.sums
    return msgspec.structs.replace(slices, once=once, sums=sums)


def choose_recompute(
    model: str, capture: CaptureOptions, problem_of: Callable[[Graph], Problem]
) -> Problem:
    """The problem of a step with as many modules that run again as memory needs."""
    from situate.solvers.recompute import with_recompute

    with working(f"reading {model}"), redirect_stdout(sys.stderr):
        step = trace_model(model, capture.optimizer, capture.slices)
    with working("choosing modules that run again"):
        problem = with_recompute(lambda modules: problem_of(step.graph(modules)))
    for warning in problem.graph.warnings:
        note(f"warning: {warning}")
    note(_recompute_note(problem))
    return problem


def _recompute_note(problem: Problem) -> str:
    modules = recomputed_modules(problem.graph)
    if not modules:
        return "recompute: no module runs again, because none would help"
    names = ", ".join(entry.module for entry in modules)
    freed = size_text(sum(entry.freed for entry in modules))
    return f"recompute: {names} run again, which frees {freed} until the backward pass"


def choose_sums(chain: Problem, recaptured: Callable[[Slices | None], Problem]) -> Problem:
    """The better of two steps, which add up gradients in a chain or in a tree.

    Args:
        chain: the step with a chain.
        recaptured: captures the step in other slices.
    """
    from situate.solvers.sum_choice import better_sums

    cut = chain.graph.slices
    tree = recaptured(cut and msgspec.structs.replace(cut, sums="tree"))
    with working("choosing the order of sums"):
        order = better_sums(chain, tree)
    note(f"sums: gradients are added up in a {order}")
    return tree if order == "tree" else chain


def choose_once(problem: Problem) -> Slices | None:
    """The slices of a step of replicas, with the parameters that should have a single copy."""
    from situate.solvers.replica_choice import parameters_once

    sizes = replicated(problem.graph)
    with working("choosing parameters with a single copy"):
        once = parameters_once(problem)
    single = size_text(sum(sizes[name] for name in once))
    note(
        f"replicas: {len(once):,} of {len(sizes):,} parameters have a single copy, {single} of "
        f"{size_text(sum(sizes.values()))} with their state"
    )
    cut = problem.graph.slices
    return cut and msgspec.structs.replace(cut, once=(*cut.once, *once))
