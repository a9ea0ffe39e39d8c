"""The placement of ops and parameters when accelerate dispatches a model by a map."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from situate.data.graph import Op
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.writers.exported import DeviceName, device_names
from situate.writers.whole_modules import is_outside, parents


def placement_of(problem: Problem, devices: Mapping[str, int]) -> list[int]:
    """The device index of every op, from the devices of a map's paths.

    Modules on a CPU or a disk run on the map's first accelerator, and accelerate moves their
    weights there. A parameter's updates run on its device. A split module's own ops run beside
    their first input.
    """
    return _Dispatch(problem, devices).placement()


def devices_of(problem: Problem, device_map: Mapping[str, DeviceName]) -> dict[str, int]:
    """Device index by path; of several CPUs or disks, which a map cannot tell apart, the first.

    Raises:
        PlanError: the map is empty, or has a place that the cluster lacks.
    """
    by_name: dict[DeviceName, int] = {}
    for device, place in enumerate(device_names(problem.cluster)):
        by_name.setdefault(place, device)
    if not device_map:
        raise PlanError("device map: it is empty")
    for path, place in device_map.items():
        if place not in by_name:
            names = ", ".join(map(repr, by_name))
            raise PlanError(
                f"device map: {path!r}: cluster {problem.cluster.name!r} has no place {place!r}; "
                f"it has {names}"
            )
    return {path: by_name[place] for path, place in device_map.items()}


class _Dispatch:
    def __init__(self, problem: Problem, devices: Mapping[str, int]) -> None:
        self.graph, self.devices = problem.graph, devices
        numbers, in_use = device_names(problem.cluster), set(devices.values())
        self.accelerators = {device for device in in_use if isinstance(numbers[device], int)}
        self.main = min(self.accelerators or in_use)
        self.below = cache(self._below)

    def placement(self) -> list[int]:
        ops = self.graph.ops
        inputs: list[list[int]] = [[] for _ in ops]
        for tensor in self.graph.tensors:
            for consumer in tensor.consumers:
                inputs[consumer].append(tensor.producer)
        placement = [self.main] * len(ops)
        lies = {op.name: self._lies(op) for op in ops if op.persistent or _is_held(op)}
        for j in self.graph.order:
            op = ops[j]
            holder = op.name if op.name in lies else op.group
            if holder in lies:
                placement[j] = lies[holder]
            elif op.kind != "input":
                here = self._runs(op)
                if here is None and inputs[j]:
                    # A computed input says where the values are; a given one, such as a mask, is
                    # moved to its readers, and a parameter may lie on another device than its
                    # reader.
                    rank = {k: (_is_given(ops[k]), ops[k].name in lies) for k in inputs[j]}
                    here = placement[min(inputs[j], key=rank.__getitem__)]
                placement[j] = self.main if here is None else here
        return placement

    def _lies(self, op: Op) -> int:
        """The device of an op's parameters; accelerate always moves the outermost module's own to
        the first accelerator."""
        own = self.devices.get(op.name) if op.module else None
        device = self.below(op.module) if own is None else own
        return self.main if device is None else device

    def _runs(self, op: Op) -> int | None:
        """The device to which the hooks move an op's module; None without hooks."""
        device = None if is_outside(op) else self.below(op.module)
        offloaded = device is not None and self.accelerators and device not in self.accelerators
        # Hooks bring offloaded weights to `main` for the time of a call, so the module computes
        # there.
        return self.main if offloaded else device

    def _below(self, module: str) -> int | None:
        """The device of the innermost path that holds `module`."""
        paths = (module, *reversed(parents(module)))
        return next((self.devices[path] for path in paths if path in self.devices), None)


def _is_held(op: Op) -> bool:
    return op.kind in ("parameter", "buffer")


def _is_given(op: Op) -> bool:
    return op.kind in ("input", "buffer")
