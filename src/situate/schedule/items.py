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


def item_order(schedule: ScheduleArrays, problem: Problem) -> Indices:
    """Items in the order of their starts, and in the decoder's order at one instant.

    Every item follows its dependencies. On a device that does one thing at a time this is the
    decoder's order.
    """
    n = problem.n
    start = np.concatenate((schedule.start, schedule.transfer_start))
    # (n + k,) by the place in the sequence; a signal, which has none, goes behind its producer.
    turn = np.empty(len(start))
    turn[schedule.sequence] = np.arange(len(schedule.sequence))
    signals = np.flatnonzero(problem.signal[schedule.tensor])
    turn[n + signals] = turn[problem.producer[schedule.tensor[signals]]] + 0.5
    return np.lexsort((turn, start))


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
    moves = np.flatnonzero(~problem.signal[schedule.tensor])
    items = np.concatenate((ops, problem.n + moves, problem.n + moves))
    devices = (schedule.placement, schedule.source[moves], schedule.target[moves])
    return items, np.concatenate(devices).astype(np.int64)


def channel_items(schedule: ScheduleArrays, problem: Problem) -> tuple[Indices, Indices]:
    """Items that occupy a channel, with that channel; none without contention."""
    if schedule.decoder == "calls" or not problem.rules.contention:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    moves = np.flatnonzero(~problem.signal[schedule.tensor])
    channel = problem.channel[schedule.source[moves], schedule.target[moves]]
    return problem.n + moves, channel.astype(np.int64)


def turns(items: Indices, lanes: Indices, order: Indices) -> Indices:
    """(2, ...) each item that occupies a device or channel (its lane), and the next item there.

    Args:
        items, lanes: (k,) items and their lanes.
        order: (n + transfers,) all items, as from `item_order`.
    """
    # Sorted by lane and then by turn, neighbours of one lane are its consecutive items.
    rising = np.lexsort((places(order)[items], lanes))
    items, lanes = items[rising], lanes[rising]
    together = lanes[1:] == lanes[:-1]
    return np.stack((items[:-1][together], items[1:][together]))
