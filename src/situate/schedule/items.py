"""Ops and transfers of a schedule as one list of items: op j is item j, transfer k is n + k."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from situate.data.topology import places

if TYPE_CHECKING:
    from situate.data.problem import Problem
    from situate.schedule.arrays import ScheduleArrays

Indices = NDArray[np.int64]


def signals(problem: Problem) -> NDArray[np.bool_]:
    """(m,) which tensors are signals: of size zero, without a transfer time of their own."""
    return np.asarray((problem.size == 0) & np.isnan(problem.transfer_seconds))


def item_order(schedule: ScheduleArrays, problem: Problem) -> Indices:
    """Items in the order in which they start.

    At one instant, what has no duration goes first, and every item follows what it depends on.
    """
    rank = places(problem.graph.order)
    # (n + k,): an op, then the transfers of what it makes, then the ops after it.
    depth = np.concatenate((2 * rank, 2 * rank[problem.producer[schedule.tensor]] + 1))
    op = np.full(problem.n, -1)
    tensor = np.concatenate((op, schedule.tensor))
    target = np.concatenate((op, schedule.target))
    start = np.concatenate((schedule.start, schedule.transfer_start))
    end = np.concatenate((schedule.end, schedule.transfer_end))
    # The last key counts first: start, then end, so that at one instant no duration goes first.
    return np.lexsort((target, tensor, depth, end, start))


def device_items(schedule: ScheduleArrays, problem: Problem) -> tuple[Indices, Indices]:
    """Items that occupy a device, with that device; a blocking transfer occupies two.

    In a call an op does not have its device to itself.
    """
    if schedule.decoder == "calls":
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ops = np.arange(problem.n)
    if problem.transfers != "blocking":
        return ops, schedule.placement.astype(np.int64)
    # A blocking transfer stands twice, with its source and with its target: (n + 2 moves,).
    moves = np.flatnonzero(~signals(problem)[schedule.tensor])
    items = np.concatenate((ops, problem.n + moves, problem.n + moves))
    devices = (schedule.placement, schedule.source[moves], schedule.target[moves])
    return items, np.concatenate(devices).astype(np.int64)


def channel_items(schedule: ScheduleArrays, problem: Problem) -> tuple[Indices, Indices]:
    """Items that occupy a channel, with that channel; none where channels have no contention."""
    if schedule.decoder == "calls" or not problem.rules.contention:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    moves = np.flatnonzero(~signals(problem)[schedule.tensor])
    channel = problem.channel[schedule.source[moves], schedule.target[moves]]
    return problem.n + moves, channel.astype(np.int64)
