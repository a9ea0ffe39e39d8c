"""accelerate: a `device_map`, which device holds the parameters of each module."""

from __future__ import annotations

import warnings
from collections import defaultdict
from pathlib import Path

from situate.errors import PlanError
from situate.problem import Problem
from situate.report.text import plural, printable
from situate.schedule import Schedule
from situate.writers.atomic import write_bytes
from situate.writers.json_bytes import json_bytes

Place = int | str
"""What accelerate calls a device: the index of an accelerator, `cpu` or `disk`."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the device map as JSON; warns of modules whose ops the plan splits over devices.

    Raises:
        PlanError: the graph names no module that holds parameters.
        SituateError: `path` cannot be written.
    """
    write_bytes(path, json_bytes(device_map(problem, schedule)))
    split = split_modules(problem, schedule)
    if split:
        names = ", ".join(printable(name, 60) for name in split[:3])
        more = ", ..." if len(split) > 3 else ""
        warnings.warn(
            f"a device map knows whole modules, but the plan splits {plural(len(split), 'module')} "
            f"over devices ({names}{more}): each goes where most of its bytes are",
            stacklevel=2,
        )


def device_map(problem: Problem, schedule: Schedule) -> dict[str, Place]:
    """Module path to place, for every module that holds parameters, as few entries as say it.

    A module goes where the plan holds most bytes of its own parameters; a path stands for all
    modules below it that are not named themselves.

    Raises:
        PlanError: the graph names no module that holds parameters.
    """
    held: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    placement = schedule.placement.tolist()
    for op, device in zip(problem.graph.ops, placement, strict=True):
        if op.persistent:
            held[op.module][device] += op.persistent
    if not held:
        raise PlanError(
            f"graph {problem.graph.name!r} has no parameters with a module path, which a device "
            "map needs: export a plan for a model captured from PyTorch"
        )
    places = _places(problem)
    modules = {
        module: places[max(bytes_on, key=lambda d: (bytes_on[d], -d))]
        for module, bytes_on in held.items()
    }
    return _folded(modules)


def split_modules(problem: Problem, schedule: Schedule) -> list[str]:
    """Modules with parameters whose ops the plan puts on more than one device."""
    devices: dict[str, set[int]] = defaultdict(set)
    holds = {op.module for op in problem.graph.ops if op.persistent}
    for op, device in zip(problem.graph.ops, schedule.placement.tolist(), strict=True):
        if op.module in holds:
            devices[op.module].add(device)
    return [module for module, used in devices.items() if len(used) > 1]


def _places(problem: Problem) -> list[Place]:
    """Accelerators are numbered in the cluster's order; CPUs and disks have names."""
    places: list[Place] = []
    for device in problem.cluster.devices:
        numbered = sum(isinstance(place, int) for place in places)
        places.append(device.kind if device.kind in ("cpu", "disk") else numbered)
    return places


def _folded(modules: dict[str, Place]) -> dict[str, Place]:
    """The shortest paths below which all modules share one place."""
    places: dict[str, set[Place]] = defaultdict(set)
    for module, place in modules.items():
        for path in _with_parents(module):
            places[path].add(place)
    folded: dict[str, Place] = {}
    for module, place in modules.items():
        agreed = (path for path in _with_parents(module) if len(places[path]) == 1)
        folded[next(agreed, module)] = place
    return folded


def _with_parents(module: str) -> list[str]:
    """`""`, `a`, `a.b` for `a.b`."""
    parts = module.split(".") if module else []
    return [".".join(parts[:i]) for i in range(len(parts) + 1)]
