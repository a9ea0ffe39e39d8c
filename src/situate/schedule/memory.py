"""Memory in use under a schedule, swept from the schedule's own times."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from situate.data.arrays import Floats, Ints
from situate.data.topology import edge_tensors, places
from situate.schedule.items import item_order

if TYPE_CHECKING:
    from situate.data.problem import Problem
    from situate.schedule.arrays import ScheduleArrays


class Clock(NamedTuple):
    """Starts and ends of ops and transfers, in seconds or in steps, and the end of the step."""

    start: Floats
    end: Floats
    transfer_start: Floats
    transfer_end: Floats
    last: float


class Lives(NamedTuple):
    """Half-open intervals of bytes on a device; shape (i,) each."""

    device: Ints
    birth: Floats
    death: Floats
    size: Ints


class Changes(NamedTuple):
    """Bytes in use on `device` from `time` on, sorted by device, then time; shape (c,) each."""

    device: Ints
    time: Floats
    use: Ints


def peaks(schedule: ScheduleArrays, problem: Problem) -> Ints:
    """Largest bytes in use on each device (d,), by the memory rule of the problem's rules."""
    peak = persistent_bytes(schedule, problem)
    if problem.rules.memory != "persistent":
        by_step = problem.rules.memory == "step"
        clock = steps(schedule, problem) if by_step else seconds(schedule)
        changes = sweep(lives(schedule, problem, clock))
        # The right side is evaluated first: persistent bytes plus the live bytes at each change.
        np.maximum.at(peak, changes.device, peak[changes.device] + changes.use)
    return peak


def persistent_bytes(schedule: ScheduleArrays, problem: Problem) -> Ints:
    """Persistent bytes on each device (d,)."""
    total = np.zeros(problem.d, np.int64)
    np.add.at(total, schedule.placement, problem.persistent)
    return total


def seconds(schedule: ScheduleArrays) -> Clock:
    """The schedule's own times."""
    return Clock(
        schedule.start,
        schedule.end,
        schedule.transfer_start,
        schedule.transfer_end,
        schedule.makespan,
    )


def steps(schedule: ScheduleArrays, problem: Problem) -> Clock:
    """A clock on which every item lasts one step, in the order of starts."""
    order = item_order(schedule, problem)
    position = places(order).astype(np.float64)
    ops, transfers = position[: problem.n], position[problem.n :]
    return Clock(ops, ops + 1, transfers, transfers + 1, len(order))


def lives(schedule: ScheduleArrays, problem: Problem, clock: Clock) -> Lives:
    """Lives of every tensor on its home device and its receivers, and of every op's workspace."""
    # (edges,): an edge is a tensor with one of its consumers.
    edge_tensor = edge_tensors(problem)
    edge_device = schedule.placement[problem.consumers]
    edge_end = clock.end[problem.consumers]

    # At home (m,) a tensor lives until its last local consumer and its last transfer end, an
    # output to the end of the step; a resident tensor's bytes there are its producer's own.
    home = schedule.placement[problem.producer]
    death = clock.end[problem.producer]
    local = edge_device == home[edge_tensor]
    np.maximum.at(death, edge_tensor[local], edge_end[local])
    np.maximum.at(death, schedule.tensor, clock.transfer_end)
    death[problem.output == 1] = clock.last
    own_size = np.where(problem.resident == 1, 0, problem.size)

    # A copy (k,) lives from the start of its transfer until its last consumer there ends. Tensor
    # and device are one number, by which an edge finds its copy among the sorted transfers.
    keys = schedule.tensor.astype(np.int64) * problem.d + schedule.target
    by_key = np.argsort(keys)
    edge_keys = edge_tensor * problem.d + edge_device
    has_copy = np.isin(edge_keys, keys)
    copy = by_key[np.searchsorted(keys, edge_keys[has_copy], sorter=by_key)]
    copy_death = clock.transfer_end.copy()
    np.maximum.at(copy_death, copy, edge_end[has_copy])
    return Lives(
        np.concatenate((schedule.placement, home, schedule.target)).astype(np.int64),
        np.concatenate((clock.start, clock.start[problem.producer], clock.transfer_start)),
        np.concatenate((clock.end, death, copy_death)),
        np.concatenate((problem.workspace, own_size, problem.size[schedule.tensor])),
    )


def sweep(lives: Lives) -> Changes:
    """Bytes in use over time; at one instant, ends come before starts."""
    # (i,) intervals -> (2 i,) changes: bytes are taken at birth and given back at death.
    is_live = (lives.size > 0) & (lives.birth < lives.death)
    device = np.tile(lives.device[is_live], 2)
    time = np.concatenate((lives.birth[is_live], lives.death[is_live]))
    change = np.concatenate((lives.size[is_live], -lives.size[is_live]))
    order = np.lexsort((time, device))
    device, time, use = device[order], time[order], np.cumsum(change[order])
    # Only the last change of an instant is settled: a death and a birth at once make no peak. The
    # sum runs on over devices, since each ends at zero.
    settled = np.append((device[1:] != device[:-1]) | (time[1:] != time[:-1]), True)[: len(use)]
    return Changes(device[settled], time[settled], use[settled])
