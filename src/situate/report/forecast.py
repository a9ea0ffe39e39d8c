"""A forecast of a plan's memory and time, before there is hardware to run it on."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.report.computing_time import check_times
from situate.report.error_bar import ErrorBar, error_bar
from situate.report.residency import PERSISTENT, WORKSPACE, Residency, residency
from situate.schedule.schedule import Schedule

CAPTURED = ("pytorch", "onnx")
"""Formats whose graphs name the role of all bytes held for the whole step."""


@dataclass(frozen=True)
class Content:
    """Bytes in a device's memory at one instant, by their role.

    Attributes:
        weights: parameters and buffers, on their home device.
        optimiser: the optimiser's state of each parameter.
        held: bytes held for the whole step whose role the graph does not say.
        gradients: tensors of the backward pass that an update reads.
        activations: all other tensors on the device that produced them.
        received: copies of tensors that other devices produced.
        workspace: temporary memory of running ops.
    """

    weights: int = 0
    optimiser: int = 0
    held: int = 0
    gradients: int = 0
    activations: int = 0
    received: int = 0
    workspace: int = 0

    @property
    def total(self) -> int:
        """Bytes of all roles."""
        return sum(getattr(self, part.name) for part in fields(self))


@dataclass(frozen=True)
class DeviceForecast:
    """The contents of a device's memory when it is first at its peak.

    Attributes:
        ops: how many run there.
        content: adds up to `peak`.
        peak, limit: bytes; limit None is unlimited.
        peak_time: in the graph's unit.
    """

    name: str
    ops: int
    content: Content
    peak: int
    limit: int | None
    peak_time: float

    @property
    def fits(self) -> bool:
        """True if the peak is within the limit."""
        return self.limit is None or self.peak <= self.limit


@dataclass(frozen=True)
class Forecast:
    """A plan's step; times in the graph's unit, sizes in bytes."""

    graph: str
    cluster: str
    unit: str
    method: str
    makespan: float
    bar: ErrorBar
    """Around the makespan."""
    period: float | None
    """Between steps in steady pipelined operation; None unless that is the objective."""
    devices: tuple[DeviceForecast, ...]

    @property
    def fits(self) -> bool:
        """True if every device's peak is within its limit."""
        return all(device.fits for device in self.devices)


def forecast(problem: Problem, schedule: Schedule, method: str = "") -> Forecast:
    """The memory of every device and the time of a step.

    Raises:
        ScheduleError: its ops wait for one another, so that it never ends.
    """
    check_times(schedule)
    memory, parts = residency(problem, schedule), _Parts(problem, schedule)
    return Forecast(
        problem.graph.name,
        problem.cluster.name,
        problem.graph.unit,
        method,
        float(schedule.makespan),
        error_bar(problem, schedule),
        schedule.period(problem) if problem.objective == "throughput" else None,
        tuple(_device(problem, schedule, memory, parts, e) for e in range(problem.d)),
    )


def _device(
    problem: Problem, schedule: Schedule, memory: Residency, parts: _Parts, device: int
) -> DeviceForecast:
    capacity = int(problem.capacity[device])
    content, time = Content(), 0.0
    instants, use = memory.use(device)
    if len(use):
        # `argmax` returns the first maximum: the instant at which the peak is reached.
        fullest = int(np.argmax(use))
        content = parts.content(memory, device, float(instants[fullest]))
        time = float(memory.time(instants[[fullest]])[0])
    return DeviceForecast(
        problem.cluster.names[device],
        int((schedule.placement == device).sum()),
        content,
        int(schedule.peak[device]),
        None if capacity >= UNLIMITED else capacity,
        time,
    )


class _Parts:
    """Sorts the contents of memory by role."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.home = schedule.placement[problem.producer]
        ops = problem.graph.ops
        self.gradient = np.zeros(len(problem.size), bool)
        self.parameter: dict[int, int] = {}
        for index, tensor in enumerate(problem.graph.tensors):
            readers = any(ops[consumer].phase == "update" for consumer in tensor.consumers)
            self.gradient[index] = readers and ops[tensor.producer].phase == "backward"
            if tensor.resident and ops[tensor.producer].kind == "parameter":
                # Resident tensors are the weights; the other bytes are optimiser state.
                before = self.parameter.get(tensor.producer, 0)
                self.parameter[tensor.producer] = before + tensor.size
        self.is_captured = problem.graph.source in CAPTURED

    def content(self, memory: Residency, device: int, instant: float) -> Content:
        """The bytes on `device` at `instant`, by role."""
        sizes: dict[str, int] = {}
        for interval in memory.at(device, instant).tolist():
            for part, size in self._parts(memory, interval, device).items():
                sizes[part] = sizes.get(part, 0) + size
        return Content(**sizes)

    def _parts(self, memory: Residency, interval: int, device: int) -> dict[str, int]:
        kind, index = int(memory.kind[interval]), int(memory.index[interval])
        size = int(memory.size[interval])
        if kind == PERSISTENT:
            return self._persistent(index, size)
        if kind == WORKSPACE:
            return {"workspace": size}
        if self.home[index] != device:
            return {"received": size}
        return {"gradients" if self.gradient[index] else "activations": size}

    def _persistent(self, op: int, size: int) -> dict[str, int]:
        """Bytes of a parameter and, beyond its own size, of its optimiser."""
        if op in self.parameter:
            weight = min(size, self.parameter[op])
            return {"weights": weight, "optimiser": size - weight}
        return {"weights" if self.is_captured else "held": size}
