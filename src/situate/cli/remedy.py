"""Remedies for a plan that a target cannot take, each tried before it is named."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from fnmatch import fnmatchcase

from situate.data.cluster import Device
from situate.data.problem import Problem
from situate.errors import PlanError, SituateError
from situate.report.slices.parallelism import data_parallel, parallelism_text
from situate.report.tables import over_text
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.solvers import solve
from situate.writers.layers import layers
from situate.writers.onnxruntime import SeveralOfAKind
from situate.writers.slices.pipeline import slice_pipeline
from situate.writers.stages import stage_schedule, stages

PIPELINE_METHODS = ("pipeline", "expert")
"""Those that place whole runs of layers, the second for networks of the zoo."""

SLICE_METHODS = ("one_f_one_b",)
"""Those that place whole runs of layers of a step of slices."""

TIME_LIMIT = 5.0
"""Time limit of each."""


def remedy(problem: Problem, schedule: Schedule, error: PlanError) -> str:
    """The remedy for an exporter's error, and by how much it does not help if it does not."""
    if isinstance(error, SeveralOfAKind):
        return one_of_each(problem)
    if data_parallel(problem, schedule):
        return f"the plan is {parallelism_text(problem, schedule)}: export it to accelerate"
    return pipeline(problem)


def one_of_each(problem: Problem) -> str:
    """A cluster with one device of each kind, the largest, if a plan fits there."""
    largest: dict[str, Device] = {}
    for device in problem.cluster.devices:
        kept = largest.setdefault(device.kind, device)
        if kept.memory is not None and (device.memory is None or device.memory > kept.memory):
            largest[device.kind] = device
    names = [device.name for device in largest.values()]
    smaller = _restricted(problem, names)
    found = solve(smaller, time_limit=TIME_LIMIT).schedule
    which = ", ".join(printable(name, 40) for name in names)
    if found.feasible(smaller):
        return f"plan on a cluster with one device of each kind, such as {which}"
    over = over_text(smaller, found).removeprefix("no: ")
    return f"no plan on one device of each kind ({which}) that fits was found either ({over})"


def _restricted(problem: Problem, names: Sequence[str]) -> Problem:
    """The problem on some of its devices."""
    cluster = problem.cluster
    links = tuple(
        link
        for link in cluster.links
        if all(any(fnmatchcase(n, end) for n in names) for end in (link.source, link.target))
    )
    devices = tuple(device for device in cluster.devices if device.name in names)
    return dataclasses.replace(
        problem, cluster=dataclasses.replace(cluster, devices=devices, links=links)
    )


def pipeline(problem: Problem) -> str:
    """The method whose plan becomes a pipeline that fits, else by how much the best does not."""
    best: Schedule | None = None
    for method in PIPELINE_METHODS if problem.graph.slices is None else SLICE_METHODS:
        found = _pipeline(problem, method)
        if found is not None and found.feasible(problem):
            return f"plan it with --method {method}"
        if found is not None and (best is None or found.excess(problem) < best.excess(problem)):
            best = found
    if best is None:
        return "no plan of whole runs of layers was found for this cluster"
    over = over_text(problem, best).removeprefix("no: ")
    return (
        f"the best pipeline that was found does not fit either ({over}): plan on a larger cluster"
    )


def _pipeline(problem: Problem, method: str) -> Schedule | None:
    """The schedule of a method's plan as a pipeline; None where it gives none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plan = solve(problem, method, time_limit=TIME_LIMIT).schedule
            if problem.graph.slices is not None:
                slice_pipeline(problem, plan)
                return plan
            stages(problem, plan)
            return stage_schedule(problem, plan, layers(problem, plan))
        except SituateError:
            return None
