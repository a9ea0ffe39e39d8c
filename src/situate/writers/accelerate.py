"""accelerate: a `device_map`, which device holds the parameters of each module."""

from __future__ import annotations

import warnings
from collections import defaultdict
from pathlib import Path

from situate.atomic import write_bytes
from situate.errors import PlanError
from situate.graph import Graph
from situate.problem import Problem
from situate.report.text import plural, printable
from situate.schedule import Schedule
from situate.writers.json_bytes import json_bytes
from situate.writers.places import Place, places
from situate.writers.whole_modules import homes, parents

SOURCES = ("pytorch", "situate")
"""Formats whose graphs call modules what PyTorch calls them."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the device map as JSON; warns of modules that the plan puts elsewhere, in part.

    Raises:
        PlanError: the graph names no module of PyTorch that holds parameters.
        SituateError: `path` cannot be written.
    """
    found = device_map(problem, schedule)
    write_bytes(path, json_bytes(found))
    moved = moved_modules(problem, schedule, found)
    if moved:
        names = ", ".join(printable(name, 60) or "the outermost" for name in moved[:3])
        more = ", ..." if len(moved) > 3 else ""
        warnings.warn(
            f"a device map knows whole modules whose results meet on one device, and differs from "
            f"the plan in {plural(len(moved), 'module')} ({names}{more})",
            stacklevel=2,
        )


def device_map(problem: Problem, schedule: Schedule) -> dict[str, Place]:
    """Module path to place, for every module that holds anything, as few entries as say it.

    A path stands for all modules below it that are not named themselves.

    Raises:
        PlanError: the graph names no module of PyTorch that holds parameters.
    """
    if not _names_modules(problem.graph):
        raise PlanError(
            f"graph {problem.graph.name!r} has no parameters with a module path, which a device "
            "map needs: export a plan for a model captured from PyTorch"
        )
    numbers = places(problem.cluster)
    return _folded({path: numbers[device] for path, device in homes(problem, schedule).items()})


def _names_modules(graph: Graph) -> bool:
    """Whether parameters are in modules; in a captured graph the outermost is one too."""
    paths = {op.module for op in graph.ops if op.persistent}
    return graph.source in SOURCES and bool(paths if graph.source == "pytorch" else paths - {""})


def moved_modules(problem: Problem, schedule: Schedule, found: dict[str, Place]) -> list[str]:
    """Modules with parameters some of whose ops the plan puts elsewhere than the map does."""
    numbers = places(problem.cluster)
    holds = {op.module for op in problem.graph.ops if op.persistent}
    place = {
        module: next(found[p] for p in (module, *reversed(parents(module))) if p in found)
        for module in holds
    }
    ops = zip(problem.graph.ops, schedule.placement.tolist(), strict=True)
    moved = (op.module for op, d in ops if op.module in holds and place[op.module] != numbers[d])
    return list(dict.fromkeys(moved))


def _folded(modules: dict[str, Place]) -> dict[str, Place]:
    """The shortest paths below which all modules share one place."""
    found_at: dict[str, set[Place]] = defaultdict(set)
    for module, place in modules.items():
        for path in (*parents(module), module):
            found_at[path].add(place)
    folded: dict[str, Place] = {}
    for module, place in modules.items():
        agreed = (path for path in (*parents(module), module) if len(found_at[path]) == 1)
        folded[next(agreed, module)] = place
    return folded
