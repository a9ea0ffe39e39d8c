"""The gain of cutting a step's batch, for a plan that takes it whole."""

from __future__ import annotations

from situate.bounds.load import least_load
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
    if result.method != "auto" or not _may_be_cut(problem) or not result.feasible:
        return ""
    least = least_load(problem).seconds
    if len(accelerators(problem)) < 2 or least > WORTH * result.makespan:
        return ""
    return (
        "every op works on the whole batch; in slices of it, with --slices auto, the step may take "
        f"{time_text(least, problem.graph.unit)} at best"
    )


def _may_be_cut(problem: Problem) -> bool:
    graph = problem.graph
    is_step = graph.source == "pytorch" and bool(graph.optimizer)
    return is_step and graph.slices is None and problem.objective == "time"
