"""Slices, stages, replicas and modules that run again, with their devices and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Floats, Ints
from situate.data.problem import Problem
from situate.data.recompute import recomputed_modules
from situate.schedule.schedule import Schedule


# The slices of a step's batch, with their devices and times.
@dataclass(frozen=True)
class SliceUse:
    """The work of one slice; times in the graph's unit.

    Attributes:
        number: from 0.
        samples: of the batch.
        start, end: of its first and its last op.
        busy: by device, the time of its ops there, the most first.
    """

    number: int
    samples: int
    start: float
    end: float
    busy: dict[str, float]


def slice_uses(problem: Problem, schedule: Schedule) -> tuple[SliceUse, ...]:
    """All slices in order; none where the step takes its batch whole."""
    if problem.graph.slices is None:
        return ()
    # (n,) the slice of each op, -1 for ops that run once a step.
    part = np.array([-1 if op.slice is None else op.slice for op in problem.graph.ops])
    samples = problem.graph.slices.shares
    return tuple(
        _slice_use(problem, schedule, part, s, samples[s]) for s in np.unique(part[part >= 0])
    )


def _slice_use(
    problem: Problem, schedule: Schedule, part: np.ndarray, number: int, samples: int
) -> SliceUse:
    ops = np.flatnonzero(part == number)
    seconds = (schedule.end - schedule.start)[ops]
    busy = np.bincount(schedule.placement[ops], seconds, problem.d)
    in_use = (d for d in np.argsort(-busy, kind="stable").tolist() if busy[d])
    return SliceUse(
        int(number),
        samples,
        float(schedule.start[ops].min()),
        float(schedule.end[ops].max()),
        {problem.cluster.names[d]: float(busy[d]) for d in in_use},
    )


# The replicas of a step's parameters, with their readers and their devices.
@dataclass(frozen=True)
class ReplicaUse:
    """A replica of the parameters.

    Attributes:
        number: from 0.
        slices: numbers of the slices that read it.
        held: by device, bytes of its parameters and their optimiser state, the most first.
        updating: time of its updates, in the graph's unit.
    """

    number: int
    slices: tuple[int, ...]
    held: dict[str, int]
    updating: float


def replica_uses(problem: Problem, schedule: Schedule) -> tuple[ReplicaUse, ...]:
    """All replicas in order; none where every parameter exists once."""
    slices = problem.graph.slices
    count = len(slices.replicas) if slices else 0
    return tuple(_replica_use(problem, schedule, number) for number in range(count))


def _replica_use(problem: Problem, schedule: Schedule, number: int) -> ReplicaUse:
    assert problem.graph.slices is not None
    ops = problem.graph.ops
    replica_ops = np.array([j for j, op in enumerate(ops) if op.replica == number], np.int64)
    updates = [j for j in replica_ops.tolist() if ops[j].phase == "update"]
    sizes = np.bincount(schedule.placement[replica_ops], problem.persistent[replica_ops], problem.d)
    return ReplicaUse(
        number,
        tuple(s for s, replica in enumerate(problem.graph.slices.replica) if replica == number),
        {
            problem.cluster.names[d]: int(sizes[d])
            for d in np.argsort(-sizes, kind="stable").tolist()
            if sizes[d]
        },
        float((schedule.end - schedule.start)[updates].sum()),
    )


# The stages of a step in slices: each device's part of the model, and its times.
PHASES = ("forward", "backward", "update")


@dataclass(frozen=True)
class StageUse:
    """The part of the model that one device runs; times in the graph's unit.

    Attributes:
        device: its name.
        slices: number of slices that it works on.
        in_flight: most slices at once between their first and their last op there. The device
            holds the activations of so many.
        forward, backward, update: the time of each phase's ops there.
        first, last: its first and last module in the forward pass; empty where no forward op
            there has a module.
    """

    device: str
    slices: int
    in_flight: int
    forward: float
    backward: float
    update: float
    first: str
    last: str


def stage_uses(problem: Problem, schedule: Schedule) -> tuple[StageUse, ...]:
    """The stages of all devices that work on slices; none where the step takes its batch whole."""
    if problem.graph.slices is None:
        return ()
    return tuple(_stages(problem, schedule))


def _stages(problem: Problem, schedule: Schedule) -> Iterator[StageUse]:
    ops = problem.graph.ops
    part = np.array([-1 if op.slice is None else op.slice for op in ops])
    phase = np.array([op.phase for op in ops])
    seconds = schedule.end - schedule.start
    for device, name in enumerate(problem.cluster.names):
        here = schedule.placement == device
        slice_ops = np.flatnonzero(here & (part >= 0))
        if len(slice_ops):
            begin, end = _spans(schedule, slice_ops, part)
            forward = (ops[op] for op in slice_ops if ops[op].phase == "forward")
            modules = [op.module for op in forward if op.module] or [""]
            times = {p: float(seconds[here & (phase == p)].sum()) for p in PHASES}
            in_flight = _most_at_once(begin, end)
            yield StageUse(name, len(begin), in_flight, **times, first=modules[0], last=modules[-1])


def _spans(schedule: Schedule, ops: Ints, part: Ints) -> tuple[Floats, Floats]:
    """(slices,) start of the first and end of the last of these ops, by slice."""
    numbers = np.unique(part[ops])
    of_slice = [ops[part[ops] == number] for number in numbers]
    begin = np.array([schedule.start[slice_ops].min() for slice_ops in of_slice])
    return begin, np.array([schedule.end[slice_ops].max() for slice_ops in of_slice])


def _most_at_once(begin: Floats, end: Floats) -> int:
    """Most intervals that overlap; one that ends as another begins does not."""
    # The number changes only as intervals begin or end, so its maximum is at a beginning.
    started_count = np.searchsorted(np.sort(begin), begin, side="right")
    ended_count = np.searchsorted(np.sort(end), begin, side="right")
    return int((started_count - ended_count).max())


# The modules of a step that run again, with their time and the memory that they free.
@dataclass(frozen=True)
class RecomputeUse:
    """A module that runs again; times in the graph's unit.

    Attributes:
        module: its path.
        ops: number of ops that run again, in all slices.
        busy: the time of these ops on their devices.
        freed: bytes that the forward pass need not keep for the backward pass, in all slices.
    """

    module: str
    ops: int
    busy: float
    freed: int


def recompute_uses(problem: Problem, schedule: Schedule) -> tuple[RecomputeUse, ...]:
    """All modules that run again, in order."""
    seconds = schedule.end - schedule.start
    return tuple(
        RecomputeUse(part.module, len(part.ops), float(seconds[list(part.ops)].sum()), part.freed)
        for part in recomputed_modules(problem.graph)
    )
