"""The expected time of a step by measured costs.

It includes two costs outside the execution model: the slowdown of devices that work at once, and
the time a CPU needs for sending.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from situate.data.arrays import Floats
from situate.data.cost_lookup import contention_of
from situate.data.problem import Problem, ProblemParts
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import rescheduled

SENDERS = ("cpu",)
"""Kinds of devices that copy their outgoing tensors themselves and cannot compute meanwhile."""


def expected_seconds(problem: Problem, schedule: Schedule) -> float:
    """Expected seconds of a schedule's step.

    It is the makespan without measured costs, or if one device does everything. Otherwise it is
    the makespan of `expected_schedule` plus the fixed cost of a step on several devices.
    """
    if problem.costs is None or not _together(schedule):
        return schedule.makespan
    return expected_schedule(problem, schedule).makespan + problem.costs.step


def expected_schedule(problem: Problem, schedule: Schedule) -> Schedule:
    """A schedule with the slowdown of devices that work at once.

    Ops and transfers keep their devices and their order. While other devices work, an op runs
    slower by the measured factor of its class. Sending keeps a CPU busy instead of a channel.
    Without measured costs, or if one device does everything, it is the schedule itself.
    """
    if problem.costs is None or not _together(schedule):
        return schedule
    ops, send_seconds = np.arange(problem.n), _send_seconds(problem, schedule)
    seconds, channels = problem.seconds.copy(), problem.transfer_seconds.copy()
    seconds[ops, schedule.placement] *= _longer(problem, schedule)
    np.add.at(seconds, (problem.producer, schedule.placement[problem.producer]), send_seconds)
    # The copy is work of the CPU now, and must not count twice.
    channels[send_seconds > 0] = 0.0
    return rescheduled(_SlowerProblem(problem, seconds, channels), schedule)


class _SlowerProblem(Problem):
    """A problem with other times of ops (n, d) and of tensors (m,), and all else as it was."""

    def __init__(self, problem: Problem, seconds: Floats, transfer_seconds: Floats) -> None:
        # Not `Problem.__init__`, which would repeat all checks and warnings.
        ProblemParts.__init__(
            self, problem.graph, problem.cluster, problem.objective, problem.rules, problem.costs
        )
        self._slower_seconds, self._slower_transfer_seconds = seconds, transfer_seconds

    @cached_property
    def seconds(self) -> Floats:
        return self._slower_seconds

    @cached_property
    def transfer_seconds(self) -> Floats:
        return self._slower_transfer_seconds


def _together(schedule: Schedule) -> bool:
    """True if several devices work at once, op by op."""
    return len(np.unique(schedule.placement)) > 1 and schedule.decoder != "calls"


def _longer(problem: Problem, schedule: Schedule) -> Floats:
    """(n,) factors by which ops take longer."""
    factors = np.ones(problem.n)
    busy = [_busy_until(schedule, device) for device in range(problem.d)]
    for d, device in enumerate(problem.cluster.devices):
        here = np.flatnonzero(schedule.placement == d)
        others = [busy[e] for e in range(problem.d) if e != d]
        # An op without duration overlaps with nothing: 0 / tiny is 0, and 0 / 0 is not.
        length = np.maximum(schedule.end[here] - schedule.start[here], 1e-300)
        beside = np.zeros(len(here))
        for worked in others:
            beside += _within(worked, schedule.start[here], schedule.end[here])
        factor = contention_of([problem.graph.ops[j] for j in here], device, problem.costs)
        # Ops slow in proportion to the share of the other devices that work beside them.
        factors[here] += (factor - 1) * beside / length / max(len(others), 1)
    return factors


def _busy_until(schedule: Schedule, device: int) -> tuple[Floats, Floats]:
    """Instants at which a device begins or ends an op, and the seconds of work before each."""
    ops = np.flatnonzero(schedule.placement == device)
    # Ops without duration come before ops that begin at the same time, so that instants rise.
    ops = ops[np.lexsort((schedule.end[ops], schedule.start[ops]))]
    # Starts at even places and ends at odd ones; work grows linearly between the two of an op.
    times = np.stack((schedule.start[ops], schedule.end[ops]), axis=1).ravel()
    worked = np.repeat(np.cumsum(schedule.end[ops] - schedule.start[ops]), 2)
    worked[::2] -= schedule.end[ops] - schedule.start[ops]
    return np.append(0.0, times), np.append(0.0, worked)


def _within(busy: tuple[Floats, Floats], start: Floats, end: Floats) -> Floats:
    """Seconds of a device's work between each pair of instants."""
    times, worked = busy
    return np.asarray(np.interp(end, times, worked) - np.interp(start, times, worked))


def _send_seconds(problem: Problem, schedule: Schedule) -> Floats:
    """(m,) seconds that a CPU needs for sending each tensor, once for all receivers.

    They are zero for blocking transfers, which stop the CPU in the schedule already.
    """
    if problem.transfers == "blocking":
        return np.zeros(len(problem.size))
    sends = np.array([device.kind in SENDERS for device in problem.cluster.devices])
    # A tensor's first transfer stands for all of them.
    tensor, first = np.unique(schedule.tensor, return_index=True)
    send_times = np.zeros(len(problem.size))
    durations = schedule.transfer_end[first] - schedule.transfer_start[first]
    send_times[tensor] = np.where(sends[schedule.source[first]], durations, 0.0)
    return send_times
