"""The stages of a pipeline of slices, recognised from a plan's placement."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.report.model_parts import ModelParts, model_parts
from situate.report.text import printable
from situate.schedule.schedule import Schedule


class NotAPipeline(PlanError):
    """The plan is no pipeline of stages; another plan of the same step may be one."""


@dataclass(frozen=True)
class Stage:
    """Consecutive parts of a model, and the device on which all slices run them."""

    device: int
    parts: tuple[str, ...]


def slice_stages(problem: Problem, schedule: Schedule) -> tuple[Stage, ...]:
    """The stages in order of execution; a device may have several.

    The device of a part is the one with most of its seconds.

    Raises:
        NotAPipeline: a part runs some slices on one device and some on another, or the graph names
            no modules.
    """
    parts = model_parts(problem.graph)
    if not parts.paths:
        raise NotAPipeline(
            f"graph {problem.graph.name!r} names no modules, which the stages of a pipeline are "
            "made of"
        )
    seconds = _seconds(problem, schedule, parts)
    devices = [_device(problem, path, seconds[i]) for i, path in enumerate(parts.paths)]
    nonempty = (device for device in devices if device is not None)
    here, locations = next(nonempty, 0), list[tuple[int, str]]()
    for path, device in zip(parts.paths, devices, strict=True):
        here = here if device is None else device
        locations.append((here, path))
    runs = groupby(locations, key=lambda location: location[0])
    return tuple(
        Stage(device, tuple(path for _, path in stage_parts)) for device, stage_parts in runs
    )


def _seconds(problem: Problem, schedule: Schedule, parts: ModelParts) -> Floats:
    """(parts, slices, devices) seconds of ops."""
    slices = problem.graph.slices
    totals = np.zeros((len(parts.paths), len(slices.shares) if slices else 0, problem.d))
    op_seconds = (schedule.end - schedule.start).tolist()
    for j, (op, part) in enumerate(zip(problem.graph.ops, parts.of_op, strict=True)):
        if op.slice is not None and part >= 0:
            totals[part, op.slice, schedule.placement[j]] += op_seconds[j]
    return totals


def _device(problem: Problem, path: str, seconds: Floats) -> int | None:
    """The device of a part from its seconds (slices, devices); None where it takes no time."""
    runs = np.flatnonzero(seconds.any(axis=1))
    if not len(runs):
        return None
    device = seconds[runs].argmax(axis=1)
    if len(others := np.flatnonzero(device != device[0])):
        names = [printable(problem.cluster.names[device[i]], 40) for i in (0, others[0])]
        raise NotAPipeline(
            f"{printable(path, 60)!r} runs slice {runs[0]} on {names[0]!r} and slice "
            f"{runs[others[0]]} on {names[1]!r}: a stage of a pipeline runs all slices of its "
            "modules"
        )
    return int(device[0])
