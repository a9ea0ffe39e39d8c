"""The stages of a step in slices: each device's part of the model, and its times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Floats, Ints
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule

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
    started_count = np.searchsorted(np.sort(begin), begin, side="right")
    ended_count = np.searchsorted(np.sort(end), begin, side="right")
    return int((started_count - ended_count).max())
