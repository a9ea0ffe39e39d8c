"""The gain of cutting a step's batch, for a plan without slices."""

from __future__ import annotations

from situate.bounds.load import least_load
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.report.units import time_text
from situate.results.result import Result

WORTH = 0.8
"""Share of a plan's makespan below which the bound of a step of slices is worth a line."""


def slicing_text(result: Result) -> str:
    """A line with the largest gain of slices and the option that cuts them.

    It is empty where the gain is small, the graph is no captured training step, or the user asked
    for a method by name.
    """
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
