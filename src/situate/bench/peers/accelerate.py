"""The placement that accelerate makes of a network of the zoo: `infer_auto_device_map`.

It is no rival scheduler: `from_pretrained(device_map="auto")` uses it, and it knows the bytes of
modules but neither time nor activations.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate import zoo
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.search import Search

DeviceMap = dict[str, int | str]
"""Modules to accelerators from 0 on, or `cpu`."""


def run(search: Search) -> None:
    """Offer the plan of the map."""
    problem = search.problem
    search.offer(placement(problem, device_map(problem)), np.array(problem.graph.order, np.int32))


def device_map(problem: Problem) -> DeviceMap:
    """As `from_pretrained(device_map="auto")` makes it: balanced by memory.

    Raises:
        SituateError: the problem's graph is no network of the zoo.
    """
    network = problem.graph.name.partition(":")[0]
    if network not in zoo.names():
        raise SituateError(f"accelerate maps modules: graph {problem.graph.name!r} has no model")
    logging.getLogger("accelerate").setLevel(logging.ERROR)  # it misses the cluster's GPUs here
    import torch
    from accelerate import infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    # Sizes are enough, so no weights take memory.
    with torch.device("meta"):
        model = zoo.build(network)[0]
    whole: dict[str, Any] = {"no_split_module_classes": getattr(model, "_no_split_modules", None)}
    limits = get_balanced_memory(model, _memory(problem), **whole)
    answer: DeviceMap = infer_auto_device_map(model, limits, **whole)
    return answer


def placement(problem: Problem, devices: DeviceMap) -> NDArray[np.int32]:
    """(n,) devices: ops run where their module is, those of no module in the map where an input
    comes from."""
    graph, names = problem.graph, _names(problem)
    source = {consumer: producer for producer, consumer in graph.edges()}
    device_of: dict[int, int] = {}
    for op in graph.order:
        place = _place(graph.ops[op].module, devices)
        device_of[op] = names[place] if place in names else device_of.get(source.get(op, -1), 0)
    of_unit = problem.allowed.argmax(axis=1)
    # Backwards, so that the first op of a unit that may run there decides.
    for op in reversed(graph.order):
        if problem.allowed[problem.unit[op], device_of[op]]:
            of_unit[problem.unit[op]] = device_of[op]
    return np.asarray(of_unit[problem.unit], np.int32)


def _memory(problem: Problem) -> dict[int | str, int]:
    """Bytes by accelerate's name of a device; the problem's accelerators count from 0."""
    capacity = problem.capacity.tolist()
    return {name: capacity[device] for name, device in _names(problem).items()}


def _names(problem: Problem) -> dict[int | str, int]:
    """Index of every accelerator, and of the first CPU, by accelerate's name for it."""
    kinds = [device.kind for device in problem.cluster.devices]
    names: dict[int | str, int] = dict(
        enumerate(d for d, kind in enumerate(kinds) if kind != "cpu")
    )
    return names | ({"cpu": kinds.index("cpu")} if "cpu" in kinds else {})


def _place(module: str, devices: DeviceMap) -> int | str | None:
    """The place of the module, or of the nearest one around it."""
    while module not in devices and module:
        module = module.rpartition(".")[0]
    return devices.get(module)
