"""A choice of slices by planning: their number and sizes, see docs/slices.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from situate.data.capture_options import CaptureOptions
from situate.data.cluster import Cluster
from situate.data.costs import Costs
from situate.data.graph import Graph
from situate.data.problem import Objective, Problem
from situate.data.rules import Rules
from situate.data.slices import AutoSlices, Slices
from situate.errors import SituateError
from situate.model import count_samples, load_graph
from situate.results.choice import Choice, SliceTrial
from situate.results.result import Progress, Result
from situate.slicing.choice import choose
from situate.slicing.cuts import Cuts
from situate.solvers import LEARNERS, solve

if TYPE_CHECKING:
    from situate.torch_capture.build import Build

__all__ = ["Choice", "SearchOptions", "SliceTrial", "solve_slices"]


class SearchOptions(TypedDict, total=False):
    """Options that `situate.solve` takes by name, for all searches of a choice together."""

    time_limit: float | None
    evaluations: int | None
    seed: int
    threads: int | None
    on_progress: Callable[[Progress], None] | None


def solve_slices(
    model: str | Path | Build,
    cluster: Cluster,
    method: str = "auto",
    *,
    objective: Objective = "time",
    rules: Rules | None = None,
    costs: Costs | None = None,
    optimizer: str | None = None,
    slices: AutoSlices | None = None,
    recompute: Sequence[str] = (),
    **search: Unpack[SearchOptions],
) -> Choice:
    """The best plan of a step, with its batch whole or in the best slices.

    A step that cannot be cut is planned whole, and `Choice.uncut` is the reason. With a number of
    evaluations and no time limit the result depends on the seed alone.

    Args:
        model: as `situate.find_model` takes it, or a function as `situate.capture` takes it.
        cluster, objective, rules, costs: as `situate.Problem` takes them.
        method: a name of `situate.METHODS`, but for those that learn.
        optimizer: the update of a captured step; None for that of a network of the zoo, else `sgd`.
        slices: how inputs are cut, and the loss; None for `AutoSlices()`.
        recompute: modules that run their forward pass again, as `situate.capture` takes them.
        search: `time_limit`, `evaluations`, `seed`, `threads` and `on_progress`, as `situate.solve`
            takes them, for all searches together; captures do not count.

    Raises:
        SituateError: as of `situate.find_model`, `situate.Problem` and `situate.solve`; a method
            that learns; `slices` that no input fits.
    """
    if unknown := search.keys() - SearchOptions.__annotations__.keys():
        raise TypeError(f"solve_slices() got an unexpected keyword argument {min(unknown)!r}")
    from situate.torch_capture import Captures

    check_method(method)
    cut_rules, captures = slices or AutoSlices(), Captures()
    options = CaptureOptions(optimizer, signed=costs is not None, recompute=recompute)

    def capture(batch_slices: Slices | None) -> Graph:
        if callable(model):
            return captures.capture(
                model, optimizer=optimizer or "sgd", slices=batch_slices, recompute=recompute
            )
        return load_graph(os.fspath(model), replace(options, slices=batch_slices), captures)

    def count() -> int:
        if callable(model):
            return captures.samples(model, "model", cut_rules.axes)
        return count_samples(model, cut_rules.axes, captures)

    def solve_within(problem: Problem, seconds: float | None, most: int | None) -> Result:
        within: SearchOptions = {**search, "time_limit": seconds, "evaluations": most}
        return solve(problem, method, **within)

    whole = Problem(capture(None), cluster, objective, rules, costs)
    cuts = Cuts(whole, cut_rules, count, capture)
    return choose(cuts, solve_within, search.get("time_limit"), search.get("evaluations"))


def check_method(method: str) -> None:
    """
    Raises:
        SituateError: the method learns, which takes measurements of one step.
    """
    if method in LEARNERS:
        raise SituateError(
            f"slices auto: method {method!r} learns from measurements of one step: give a number "
            "of slices, such as 4"
        )
