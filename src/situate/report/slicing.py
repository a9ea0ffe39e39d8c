"""The gain of cutting a step's batch, for a plan that takes it whole."""

from __future__ import annotations

import numpy as np

from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.report.units import time_text
from situate.results.result import Result

WORTH = 0.8
"""Share of a plan's makespan that a step of slices must stay below to be spoken of."""


def slicing_text(result: Result) -> str:
    """A line that says what slices would gain at best, and how to cut them; empty where they gain
    little, the graph is no training step that can be captured in slices, or a method was asked for
    by name."""
    problem = result.problem
    count = len(accelerators(problem))
    if result.method != "auto" or not _may_be_cut(problem) or count < 2 or not result.feasible:
        return ""
    shared = _shared_seconds(problem)
    if shared > WORTH * result.makespan:
        return ""
    return (
        f"every op works on the whole batch; in slices of it, as with --slices {count}, the step "
        f"may take {time_text(shared, problem.graph.unit)} at best"
    )


def _may_be_cut(problem: Problem) -> bool:
    graph = problem.graph
    is_step = graph.source == "pytorch" and bool(graph.optimizer)
    return is_step and graph.slices is None and problem.objective == "time"


def _shared_seconds(problem: Problem) -> float:
    """Seconds of all ops where the accelerators share them by speed, and nothing is sent."""
    seconds = problem.seconds[:, accelerators(problem)].sum(axis=0)
    runs = np.isfinite(seconds) & (seconds > 0)
    return float(1 / (1 / seconds[runs]).sum()) if runs.any() else np.inf
