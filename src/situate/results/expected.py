"""The expected time of a step whose costs were measured, with what the execution model
leaves out: what devices that work at once cost one another, and sending."""

from __future__ import annotations

import copy

import numpy as np

from situate.data.arrays import Floats
from situate.data.cost_lookup import contention_of
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import rescheduled

SENDERS = ("cpu",)
"""Kinds of devices that copy what they send themselves: they compute nothing meanwhile."""


def expected_seconds(problem: Problem, schedule: Schedule) -> float:
    """Seconds of a step as a schedule says; its makespan where no costs were measured or one device
    does everything. Otherwise that of `expected_schedule`, and what a step on several devices takes
    beside it."""
    if problem.costs is None or not _together(schedule):
        return schedule.makespan
    return expected_schedule(problem, schedule).makespan + problem.costs.step


def expected_schedule(problem: Problem, schedule: Schedule) -> Schedule:
    """A schedule with what devices that work at once cost one another.

    Ops and transfers run where and in the order that they do in the schedule. An op takes as many
    times longer as its class was measured to while other devices work, for the part of it in which
    they do; and what a CPU sends keeps it busy instead of a channel. Where no costs were measured
    or one device does everything it is the schedule itself.
    """
    if problem.costs is None or not _together(schedule):
        return schedule
    ops, sent = np.arange(problem.n), _sent(problem, schedule)
    seconds, channels = problem.seconds.copy(), problem.transfer_seconds.copy()
    seconds[ops, schedule.placement] *= _longer(problem, schedule)
    np.add.at(seconds, (problem.producer, schedule.placement[problem.producer]), sent)
    channels[sent > 0] = 0.0
    slower = copy.copy(problem)
    slower.__dict__.update(seconds=seconds, transfer_seconds=channels)
    return rescheduled(slower, schedule)


def _together(schedule: Schedule) -> bool:
    """(n,) true where devices work at once, op by op."""
    return len(np.unique(schedule.placement)) > 1 and schedule.decoder != "calls"


def _longer(problem: Problem, schedule: Schedule) -> Floats:
    """(n,) how many times longer ops take."""
    found = np.ones(problem.n)
    busy = [_busy_until(schedule, device) for device in range(problem.d)]
    for d, device in enumerate(problem.cluster.devices):
        here = np.flatnonzero(schedule.placement == d)
        others = [busy[e] for e in range(problem.d) if e != d]
        length = np.maximum(schedule.end[here] - schedule.start[here], 1e-300)
        beside = np.zeros(len(here))
        for worked in others:
            beside += _within(worked, schedule.start[here], schedule.end[here])
        factor = contention_of([problem.graph.ops[j] for j in here], device, problem.costs)
        found[here] += (factor - 1) * beside / length / max(len(others), 1)
    return found


def _busy_until(schedule: Schedule, device: int) -> tuple[Floats, Floats]:
    """Instants at which a device begins or ends an op, and the seconds it has worked by then."""
    ops = np.flatnonzero(schedule.placement == device)
    # What takes no time comes before what begins with it, so that instants rise.
    ops = ops[np.lexsort((schedule.end[ops], schedule.start[ops]))]
    times = np.stack((schedule.start[ops], schedule.end[ops]), axis=1).ravel()
    worked = np.repeat(np.cumsum(schedule.end[ops] - schedule.start[ops]), 2)
    worked[::2] -= schedule.end[ops] - schedule.start[ops]
    return np.append(0.0, times), np.append(0.0, worked)


def _within(busy: tuple[Floats, Floats], start: Floats, end: Floats) -> Floats:
    """Seconds that a device works between two instants each."""
    times, worked = busy
    return np.asarray(np.interp(end, times, worked) - np.interp(start, times, worked))


def _sent(problem: Problem, schedule: Schedule) -> Floats:
    """(m,) seconds in which a CPU sends each tensor beside the schedule: once, whoever receives it.
    For a blocking transfer it stops in the schedule already."""
    if problem.transfers == "blocking":
        return np.zeros(len(problem.size))
    sends = np.array([device.kind in SENDERS for device in problem.cluster.devices])
    tensor, first = np.unique(schedule.tensor, return_index=True)
    found = np.zeros(len(problem.size))
    taken = schedule.transfer_end[first] - schedule.transfer_start[first]
    found[tensor] = np.where(sends[schedule.source[first]], taken, 0.0)
    return found
