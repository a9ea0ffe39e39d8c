"""The stages of a pipeline of slices, recognised from a plan's placement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from situate.data.arrays import Floats
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import PlanError
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


# The parts of a model that run one after the other, such as its layers, by module paths.
_NUMBERED = re.compile(r"(?:[^.]+\.)*?\d+(?=\.|$)")
"""The beginning of a path up to its first number, such as `model.layers.3`."""


@dataclass(frozen=True)
class ModelParts:
    """The parts of a model.

    Attributes:
        paths: in the order of the forward pass.
        of_op: (n,) the part of each op; -1 in a module that holds parts, or in none.
    """

    paths: tuple[str, ...]
    of_op: tuple[int, ...]


def model_parts(graph: Graph) -> ModelParts:
    """The numbered modules, such as layers, and the outermost modules beside them."""
    modules = [op.module.replace("/", ".") for op in graph.ops]
    holders = {path for module in set(modules) for path in _above_number(module)}
    path_of = {module: _part(module, holders) for module in set(modules)}
    running = (j for j in graph.program_order if graph.ops[j].kind not in ("parameter", "buffer"))
    forward = (path_of[modules[j]] for j in running if graph.ops[j].phase in ("", "forward"))
    number = {path: i for i, path in enumerate(dict.fromkeys(path for path in forward if path))}
    return ModelParts(tuple(number), tuple(number.get(path_of[m], -1) for m in modules))


def _above_number(module: str) -> list[str]:
    """The modules around a numbered one: `a` and `a.b` for `a.b.0.c`."""
    match = _NUMBERED.match(module)
    parts = match[0].split(".")[:-1] if match else []
    return [".".join(parts[:i]) for i in range(1, len(parts) + 1)]


def _part(module: str, holders: set[str]) -> str:
    """The outermost module on the way to `module` that holds no parts; empty if there is none."""
    parts = module.split(".")
    paths = (".".join(parts[:i]) for i in range(1, len(parts) + 1))
    return next((path for path in paths if path not in holders), "")
