"""Remedies for a plan that a target cannot run; each is tried first."""

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
"""Methods that place whole runs of layers; `expert` is for networks of the zoo."""

SLICE_METHODS = ("one_f_one_b",)
"""Methods that place whole runs of layers of a step of slices."""

TIME_LIMIT = 5.0
"""Seconds of each trial."""


def remedy(problem: Problem, schedule: Schedule, error: PlanError) -> str:
    """The remedy for an exporter's error, or the memory that is missing for it."""
    if isinstance(error, SeveralOfAKind):
        return one_of_each(problem)
    if data_parallel(problem, schedule):
        return f"the plan is {parallelism_text(problem, schedule)}: export it to accelerate"
    return pipeline(problem)


def one_of_each(problem: Problem) -> str:
    """Advice to plan on the largest device of each kind, if a plan fits there."""
    largest: dict[str, Device] = {}
    for device in problem.cluster.devices:
        best = largest.setdefault(device.kind, device)
        if best.memory is not None and (device.memory is None or device.memory > best.memory):
            largest[device.kind] = device
    names = [device.name for device in largest.values()]
    smaller = _restricted(problem, names)
    schedule = solve(smaller, time_limit=TIME_LIMIT).schedule
    examples = ", ".join(printable(name, 40) for name in names)
    if schedule.feasible(smaller):
        return f"plan on a cluster with one device of each kind, such as {examples}"
    excess = over_text(smaller, schedule).removeprefix("no: ")
    return f"the best plan on one device of each kind ({examples}) does not fit either ({excess})"


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
    """The method whose plan is a pipeline that fits, or the memory that the best one lacks."""
    best: Schedule | None = None
    for method in PIPELINE_METHODS if problem.graph.slices is None else SLICE_METHODS:
        schedule = _pipeline(problem, method)
        if schedule is None:
            continue
        if schedule.feasible(problem):
            return f"plan it with --method {method}"
        if best is None or schedule.excess(problem) < best.excess(problem):
            best = schedule
    if best is None:
        return "no method places whole runs of layers on this cluster"
    excess = over_text(problem, best).removeprefix("no: ")
    return f"the best pipeline does not fit either ({excess}): plan on a larger cluster"


def _pipeline(problem: Problem, method: str) -> Schedule | None:
    """The schedule of a method's plan as a pipeline; None if it cannot be one."""
    with warnings.catch_warnings():
        # Writers warn of differences from the plan, but nothing is written here.
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
