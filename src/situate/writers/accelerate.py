"""accelerate: a `device_map`, the device of each module's parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.files.atomic import write_bytes
from situate.files.strict_json import json_bytes
from situate.report.text import plural, printable
from situate.schedule.schedule import Schedule
from situate.writers.accelerate_dispatch import devices_of, placement_of
from situate.writers.cuts import parallelism_config
from situate.writers.exported import DeviceName, device_names, differences, exported
from situate.writers.module_devices import ModuleDevices, module_devices
from situate.writers.slices import data_parallel
from situate.writers.whole_modules import folded

SOURCES = ("pytorch", "situate")
"""Formats whose graphs name modules as PyTorch does."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the device map as JSON.

    Warns if the map differs from the plan, with its predicted step and memory, and if it does not
    fit. A plan of slices becomes a script, see `slices.data_parallel`, and so does a plan of parts,
    see `cuts.parallelism_config`.

    Raises:
        PlanError: the graph names no module of PyTorch that holds parameters.
        SituateError: `path` cannot be written.
    """
    if problem.graph.cuts is not None:
        parallelism_config.write(problem, schedule, path)
        return
    if problem.graph.slices is not None:
        data_parallel.write(problem, schedule, path)
        return
    modules = _module_devices(problem, schedule)
    device_map = _map(problem, modules)
    write_bytes(path, json_bytes(device_map))
    for line in _differences(problem, schedule, modules, device_map):
        warnings.warn(line, stacklevel=2)


def device_map(problem: Problem, schedule: Schedule) -> dict[str, DeviceName]:
    """The device map: a place for every module with parameters, in as few entries as possible.

    A path stands for all modules below it without entries of their own. The map names a split
    module's own parameters as the model's state does.

    Raises:
        PlanError: the graph names no module of PyTorch that holds parameters.
    """
    return _map(problem, _module_devices(problem, schedule))


def map_schedule(
    problem: Problem, device_map: Mapping[str, DeviceName], schedule: Schedule
) -> Schedule | None:
    """The predicted schedule of the plan `schedule` under a device map.

    Its `peak` is the memory, its `makespan` the step, `overflow` the bytes beyond the devices'
    capacities. None if the map puts an op on a device that cannot run it.

    Raises:
        PlanError: the map is empty, or names a place that the cluster lacks.
    """
    return exported(problem, schedule, placement_of(problem, devices_of(problem, device_map)))


def _module_devices(problem: Problem, schedule: Schedule) -> ModuleDevices:
    if not _names_modules(problem.graph):
        raise PlanError(
            f"graph {problem.graph.name!r} has no parameters with a module path, which a device "
            "map needs: export a plan for a model captured from PyTorch"
        )
    return module_devices(problem, schedule)


def _map(problem: Problem, modules: ModuleDevices) -> dict[str, DeviceName]:
    numbers = device_names(problem.cluster)
    return folded({path: numbers[device] for path, device in modules.devices.items()})


def _differences(
    problem: Problem,
    schedule: Schedule,
    modules: ModuleDevices,
    device_map: Mapping[str, DeviceName],
) -> Iterator[str]:
    """A line for each difference between the map and the plan."""
    moved = moved_modules(problem, schedule, device_map)
    if moved:
        names = ", ".join(printable(name, 60) or "the outermost" for name in moved[:3])
        more = ", ..." if len(moved) > 3 else ""
        yield (
            f"a device map knows whole modules whose results meet on one device, and differs from "
            f"the plan in {plural(len(moved), 'module')} ({names}{more})"
        )
    yield from differences(problem, schedule, modules.schedule, "map")
    if modules.loose:
        yield (
            "a module that is split is handed what another makes of nothing, such as a mask: the "
            "model has to make it on the device of what it meets"
        )
    if modules.moves_inputs:
        yield (
            "the model has to bring inputs, such as labels, to the device of its results, as "
            "`labels.to(logits.device)` does"
        )


def _names_modules(graph: Graph) -> bool:
    """True if parameters are in modules; in a captured graph the outermost is one too."""
    paths = {op.module for op in graph.ops if op.persistent}
    return graph.source in SOURCES and bool(paths if graph.source == "pytorch" else paths - {""})


def moved_modules(
    problem: Problem, schedule: Schedule, device_map: Mapping[str, DeviceName]
) -> list[str]:
    """Modules with parameters that the plan and the map put on different devices, at least in
    part."""
    holds = {op.module for op in problem.graph.ops if op.persistent}
    placement = placement_of(problem, devices_of(problem, device_map))
    ops = zip(problem.graph.ops, placement, schedule.placement.tolist(), strict=True)
    moved = (op.module for op, here, there in ops if op.module in holds and here != there)
    return list(dict.fromkeys(moved))
