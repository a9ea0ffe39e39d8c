"""An explanation of a plan: its critical path, the contents of memory, and the memory it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from situate.data.problem import Objective, Problem
from situate.data.problem_arrays import UNLIMITED
from situate.report.computing_time import check_times, covered
from situate.report.critical import CriticalPath, critical_path
from situate.report.one_device import SingleDevice, objective_value, single_device
from situate.report.parts import collectives_text, parts_text
from situate.report.residency import PERSISTENT, TENSOR, WORKSPACE, Residency, residency
from situate.report.slices.parallelism import parallelism_text
from situate.report.slices.use import (
    RecomputeUse,
    ReplicaUse,
    SliceUse,
    StageUse,
    recompute_uses,
    replica_uses,
    slice_uses,
    stage_uses,
)
from situate.report.tables import never_text
from situate.report.text import tensor_name
from situate.schedule.schedule import Schedule

MAX_LISTED = 10
"""Most transfers, and most holders of memory, in an explanation."""
KINDS = {PERSISTENT: "persistent", TENSOR: "tensor", WORKSPACE: "workspace"}


@dataclass(frozen=True)
class Holder:
    """A holder of memory at a peak: the op's or tensor's name, `persistent`, `tensor` or
    `workspace`, and bytes."""

    name: str
    kind: str
    size: int


@dataclass(frozen=True)
class Transfer:
    """One transfer; times in the graph's unit, `queued` before it started."""

    tensor: str
    source: str
    target: str
    size: int
    seconds: float
    queued: float
    start: float


@dataclass(frozen=True)
class DeviceUse:
    """The work of one device, and the contents of its memory at the peak.

    Attributes:
        ops: how many run there.
        busy, idle: time in which it computes, and in which it does not (with blocking transfers:
            neither computes nor transfers).
        sending, receiving: sums over its transfers.
        peak, limit: bytes; limit None is unlimited.
        peak_time: when the device first reaches its peak.
        persistent, tensors, workspace: bytes of the peak.
        holders: the largest holders of memory at the peak.
    """

    name: str
    ops: int
    busy: float
    idle: float
    sending: float
    receiving: float
    peak: int
    limit: int | None
    peak_time: float
    persistent: int
    tensors: int
    workspace: int
    holders: tuple[Holder, ...]

    @property
    def over(self) -> int:
        """Bytes above the limit."""
        return 0 if self.limit is None else max(0, self.peak - self.limit)


@dataclass(frozen=True)
class Relaxation:
    """The changes of memory that would make this very plan fit.

    Attributes:
        memory: bytes that each device without enough memory would need.
        factor: alternatively, the factor for the memory of every device.
        held: bytes that all ops hold for the whole step.
        room: bytes of all devices; None is unlimited.
        never: the reason that no plan fits; empty where one may.
    """

    memory: dict[str, int]
    factor: float
    held: int
    room: int | None
    never: str


@dataclass(frozen=True)
class Explanation:
    """A schedule, explained. Times are in the graph's unit, sizes in bytes."""

    unit: str
    objective: Objective
    value: float
    """The objective's value."""
    makespan: float
    feasible: bool
    critical_path: CriticalPath
    transfers: tuple[Transfer, ...]
    """The costliest first."""
    devices: tuple[DeviceUse, ...]
    overflows: dict[str, int]
    """Bytes above the limit, by device without enough memory."""
    relaxation: Relaxation | None
    """None where the plan fits."""
    single: SingleDevice | None
    """None where no single device may run all ops."""
    busiest: tuple[Busy, ...]
    """Devices and channels that limit steady operation, if the objective is `throughput`."""
    slices: tuple[SliceUse, ...]
    """The slices of the batch; none where the step takes it whole."""
    replicas: tuple[ReplicaUse, ...]
    """The replicas of the parameters; empty where each parameter exists once."""
    parallelism: str
    """The kinds of parallelism of a plan of parts or slices, such as data parallel; empty where it
    has no name."""
    collectives: str
    """The step of a plan of parts with collectives in place of its exchanges; empty without any."""
    stages: tuple[StageUse, ...]
    """The devices that work on slices."""
    recompute: tuple[RecomputeUse, ...]
    """The modules that run their forward pass again."""


def explain(problem: Problem, schedule: Schedule) -> Explanation:
    """Explain `schedule`: its critical path, the contents of memory, the memory it lacks.

    Raises:
        ScheduleError: its ops wait for one another, so that it never ends.
    """
    check_times(schedule)
    memory = residency(problem, schedule)
    devices = tuple(_device(problem, schedule, memory, e) for e in range(problem.d))
    overflows = {device.name: device.over for device in devices if device.over}
    return Explanation(
        unit=problem.graph.unit,
        objective=problem.objective,
        value=objective_value(problem, schedule),
        makespan=float(schedule.makespan),
        feasible=not overflows,
        critical_path=critical_path(problem, schedule),
        transfers=_costliest(problem, schedule),
        devices=devices,
        overflows=overflows,
        relaxation=_relaxation(problem, devices) if overflows else None,
        single=single_device(problem, schedule),
        busiest=busiest(problem, schedule) if problem.objective == "throughput" else (),
        slices=slice_uses(problem, schedule),
        replicas=replica_uses(problem, schedule),
        parallelism=_parallelism(problem, schedule),
        collectives=collectives_text(problem, schedule),
        stages=stage_uses(problem, schedule),
        recompute=recompute_uses(problem, schedule),
    )


def _parallelism(problem: Problem, schedule: Schedule) -> str:
    """The kinds of parallelism that have a name, over parts and over slices."""
    texts = parts_text(problem, schedule), parallelism_text(problem, schedule)
    return "; ".join(filter(None, texts))


def _device(problem: Problem, schedule: Schedule, memory: Residency, device: int) -> DeviceUse:
    is_here = schedule.placement == device
    is_sender, is_receiver = schedule.source == device, schedule.target == device
    seconds = schedule.transfer_end - schedule.transfer_start
    capacity = int(problem.capacity[device])
    at, parts, holders = _peak(problem, memory, device)
    return DeviceUse(
        name=problem.cluster.names[device],
        ops=int(is_here.sum()),
        busy=covered(schedule.start[is_here], schedule.end[is_here]),
        idle=max(0.0, float(schedule.makespan) - _occupied(problem, schedule, device)),
        sending=float(seconds[is_sender].sum()),
        receiving=float(seconds[is_receiver].sum()),
        peak=int(schedule.peak[device]),
        limit=None if capacity >= UNLIMITED else capacity,
        peak_time=at,
        persistent=parts[PERSISTENT],
        tensors=parts[TENSOR],
        workspace=parts[WORKSPACE],
        holders=holders,
    )


def _occupied(problem: Problem, schedule: Schedule, device: int) -> float:
    """Time in which the device computes or takes part in a transfer that blocks it."""
    ops = schedule.placement == device
    moves = (schedule.source == device) | (schedule.target == device)
    moves &= problem.transfers == "blocking"
    start = np.concatenate((schedule.start[ops], schedule.transfer_start[moves]))
    end = np.concatenate((schedule.end[ops], schedule.transfer_end[moves]))
    return covered(start, end)


def _peak(
    problem: Problem, memory: Residency, device: int
) -> tuple[float, list[int], tuple[Holder, ...]]:
    """The time of the device's peak, and the bytes by kind and the largest holders then."""
    instants, use = memory.use(device)
    if not len(use):
        return 0.0, [0, 0, 0], ()
    fullest = int(np.argmax(use))
    present = memory.at(device, float(instants[fullest]))
    parts = [int(memory.size[present][memory.kind[present] == kind].sum()) for kind in KINDS]
    holders = tuple(_holder(problem, memory, i) for i in present[:MAX_LISTED].tolist())
    return float(memory.time(instants[[fullest]])[0]), parts, holders


def _holder(problem: Problem, memory: Residency, interval: int) -> Holder:
    kind, index = int(memory.kind[interval]), int(memory.index[interval])
    tensor = kind == TENSOR
    name = tensor_name(problem, index) if tensor else problem.graph.ops[index].name
    return Holder(name, KINDS[kind], int(memory.size[interval]))


def _costliest(problem: Problem, schedule: Schedule) -> tuple[Transfer, ...]:
    seconds = schedule.transfer_end - schedule.transfer_start
    longest = np.argsort(-seconds, kind="stable")[:MAX_LISTED].tolist()
    return tuple(_transfer(problem, schedule, k) for k in longest)


def _transfer(problem: Problem, schedule: Schedule, k: int) -> Transfer:
    names, tensor = problem.cluster.names, int(schedule.tensor[k])
    produced_at = float(schedule.end[problem.producer[tensor]])
    start, end = float(schedule.transfer_start[k]), float(schedule.transfer_end[k])
    return Transfer(
        tensor=tensor_name(problem, tensor),
        source=names[int(schedule.source[k])],
        target=names[int(schedule.target[k])],
        size=int(problem.size[tensor]),
        seconds=end - start,
        queued=max(0.0, start - produced_at),
        start=start,
    )


def _relaxation(problem: Problem, devices: tuple[DeviceUse, ...]) -> Relaxation:
    with_limit = [device for device in devices if device.limit is not None]
    unlimited = len(with_limit) < len(devices)
    return Relaxation(
        memory={device.name: device.peak for device in devices if device.over},
        factor=max(device.peak / device.limit for device in with_limit if device.limit),
        held=int(problem.persistent.sum()),
        room=None if unlimited else int(problem.capacity.sum()),
        never=never_text(problem),
    )


# The bottleneck of pipelined operation: how long a step keeps each device and channel busy.
@dataclass(frozen=True)
class Busy:
    """A device or a channel, and the time that each step keeps it busy, in the graph's unit."""

    kind: Literal["device", "channel"]
    name: str
    seconds: float


def busiest(problem: Problem, schedule: Schedule) -> tuple[Busy, ...]:
    """Devices and channels in use, the busiest first: its time is the time between steps.

    Channels without contention set no limit.
    """
    seconds = schedule.busy(problem).tolist()
    resources = [Busy("device", *use) for use in zip(problem.cluster.names, seconds, strict=True)]
    if problem.transfers != "atomic" and problem.rules.contention:
        moving = schedule.channel_busy(problem).tolist()
        channels = zip(problem.cluster.channels, moving, strict=True)
        resources += [Busy("channel", *use) for use in channels]
    return tuple(sorted((busy for busy in resources if busy.seconds), key=lambda b: -b.seconds))
