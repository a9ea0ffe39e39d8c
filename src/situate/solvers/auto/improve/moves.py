"""Moves that a random search finds late: swaps of devices, and shifts at critical transfers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints, Placement
from situate.data.problem import Problem
from situate.data.topology import (
    accelerators,
    edge_tensors,
    folded_order,
    may_run,
    op_devices,
    unit_devices,
)
from situate.schedule.items import channel_items, device_items, item_order, turns
from situate.schedule.schedule import Schedule
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

SWAP_SHARE = 0.02
"""Largest share of the budget for swaps."""


CRITICAL_SHARE = 0.1
"""Largest share of the remaining budget for critical moves."""

MOST_UNITS = 256
"""Largest number of units in a move; lengths are powers of two."""

MOST_READERS = 2
"""Number of a transfer's readers around which moves begin."""

Units = Ints


def swap_devices(search: Search) -> None:
    """Swap pairs of devices until no swap improves the best plan.

    Rules place segments in the order of the devices. Over slow links, or on devices of different
    speeds, another order may be far better, and no move of a single segment reaches it.
    """
    least = search.budget.remaining() - SWAP_SHARE
    before = None
    while search.best is not before:
        before = search.best
        for a, b in unlike_pairs(search.problem):
            if search.finished() or search.budget.remaining() < least:
                return
            incumbent = search.incumbent
            traded = swapped(search.problem, incumbent.placement, a, b)
            if not np.array_equal(traded, incumbent.placement):
                search.consider(traded, incumbent.order, incumbent.decoder)


def swapped(problem: Problem, placement: Placement, a: int, b: int) -> Placement:
    """The placement (n,) with the units of a and b exchanged, as far as they are allowed."""
    of_unit = unit_devices(problem, placement)
    # (units,) the device of each unit after the swap.
    to = np.select([of_unit == a, of_unit == b], [b, a], of_unit)
    return op_devices(problem, np.where(may_run(problem, to), to, of_unit))


def unlike_pairs(problem: Problem) -> Iterator[tuple[int, int]]:
    """Pairs of accelerators that are not interchangeable.

    Interchangeability is an equivalence, so each device is compared only with the first of every
    kind.
    """
    first: dict[int, int] = {}
    for a, b in combinations(accelerators(problem), 2):
        kind = first.setdefault(a, a)
        if kind == a and b not in first and _alike(problem, a, b):
            first[b] = a
        if first.get(b) != kind:
            yield a, b


def _alike(problem: Problem, a: int, b: int) -> bool:
    return _linked_alike(problem, a, b) and _equal(problem, a, b)


def _linked_alike(problem: Problem, a: int, b: int) -> bool:
    """True if links and shared channels stay the same when the two devices are exchanged; only
    their rows and columns can differ."""
    # (d,) the devices with a and b exchanged: row a must equal row b in that order of columns.
    turn = np.arange(problem.d)
    turn[[a, b]] = b, a
    tables = (problem.latency, problem.bandwidth)
    same = all(
        np.array_equal(table[a], table[b, turn]) and np.array_equal(table[:, a], table[turn, b])
        for table in tables
    )
    return same and _joined_alike(problem.channel, a, b, turn)


def _joined_alike(channel: NDArray[np.int32], a: int, b: int, turn: NDArray[np.int64]) -> bool:
    """True if the exchange maps channels to channels one to one."""
    # (4 d,) channels of all links of the two devices, before and after the exchange.
    before = np.concatenate((channel[a], channel[b], channel[:, a], channel[:, b]))
    after = np.concatenate((channel[b, turn], channel[a, turn], channel[turn, b], channel[turn, a]))
    others = np.delete(np.delete(channel, [a, b], 0), [a, b], 1)
    became = set(zip(before.tolist(), after.tolist(), strict=True))
    # Channels that other devices also use must map to themselves.
    became |= {(c, c) for c in before[np.isin(before, others)].tolist()}
    return len(became) == len(set(before.tolist()))


def _equal(problem: Problem, a: int, b: int) -> bool:
    columns = (problem.capacity, problem.accelerators, problem.allowed, problem.seconds)
    return all(np.array_equal(column[..., a], column[..., b]) for column in columns)


class Move(NamedTuple):
    """Units that go to a device."""

    units: Units
    device: int


def move_critical(search: Search, lines: list[Units]) -> None:
    """Shift borders between devices at the critical transfers of the best plan, the longest first,
    as long as the plan gets better.

    To avoid a long transfer, a segment of a certain length may have to move, such as the forward
    pass of a few ops without their backward pass. A random search finds such moves late.

    Args:
        search: for the shortest step.
        lines: along which borders shift, see `phase_lines`.
    """
    end = search.budget.remaining() * (1 - CRITICAL_SHARE)
    before = None
    while (
        search.best is not before and search.incumbent.feasible and search.budget.remaining() > end
    ):
        before = search.incumbent
        _first_better(search, before, lines, end)


def phase_lines(problem: Problem) -> list[Units]:
    """Units along the folded line: all, then those of each phase."""
    line, first = folded_order(problem).astype(np.int64), np.zeros(problem.units, np.int64)
    phases = {phase: i for i, phase in enumerate(dict.fromkeys(o.phase for o in problem.graph.ops))}
    # Backwards, so that the first op of a unit decides its phase.
    first[problem.unit[::-1]] = [phases[op.phase] for op in reversed(problem.graph.ops)]
    return [line, *(line[first[line] == phase] for phase in phases.values())]


def _first_better(search: Search, incumbent: Candidate, lines: list[Units], end: float) -> None:
    """Offer moves until one improves the plan."""
    problem = search.problem
    of_unit = unit_devices(problem, incumbent.placement)
    visited: set[tuple[bytes, int]] = set()
    for units, device in _moves(problem, incumbent.schedule, lines, of_unit):
        # Sorted, because lines overlap and propose the same units in different order.
        units = np.sort(units[problem.allowed[units, device]])
        if not len(units) or (key := (units.tobytes(), device)) in visited:
            continue
        if search.budget.remaining() <= end:
            return
        visited.add(key)
        moved = of_unit.copy()
        moved[units] = device
        search.consider(op_devices(problem, moved), incumbent.order, incumbent.decoder)
        if search.best is not incumbent:
            return


def _moves(
    problem: Problem, schedule: Schedule, lines: list[Units], of_unit: NDArray[np.int32]
) -> Iterator[Move]:
    """Moves for every critical transfer: units of the sender to the receiver, and the reverse."""
    for transfer in critical_transfers(problem, schedule):
        tensor = schedule.tensor[transfer]
        source, target = int(schedule.source[transfer]), int(schedule.target[transfer])
        first, last = problem.consumer_start[tensor : tensor + 2]
        readers = np.unique(problem.unit[problem.consumers[first:last]])
        # The units on the receiving device that read the tensor.
        readers = readers[of_unit[readers] == target].astype(np.int64)
        for units in _around(lines, of_unit, int(problem.unit[problem.producer[tensor]])):
            yield Move(units, target)
        for reader in readers[:MOST_READERS].tolist():
            for units in _around(lines, of_unit, reader):
                yield Move(units, source)


def _around(lines: list[Units], of_unit: NDArray[np.int32], unit: int) -> Iterator[Units]:
    """Units on the device of `unit` that end or begin with it, along every line that it is in."""
    for line in lines:
        here = line[of_unit[line] == of_unit[unit]]
        for place in np.flatnonzero(here == unit).tolist():
            length = 1
            while length <= MOST_UNITS:
                yield here[max(0, place + 1 - length) : place + 1]
                yield here[place : place + length]
                length *= 2


def critical_transfers(problem: Problem, schedule: Schedule) -> list[int]:
    """Transfers on the critical path, the longest first.

    The path leads back from the last end; each item's predecessor is the input, or the item on its
    device or channel, that it waited for longest.
    """
    ends = np.concatenate((schedule.end, schedule.transfer_end))
    waited = _waited(problem, schedule, ends)
    # The path ends at an item that waited for nothing.
    transfers, item = [], int(ends.argmax())
    while item >= 0:
        if item >= problem.n:
            transfers.append(item - problem.n)
        item = int(waited[item])
    seconds = schedule.transfer_end - schedule.transfer_start
    return sorted(transfers, key=lambda transfer: -float(seconds[transfer]))


def _waited(problem: Problem, schedule: Schedule, ends: NDArray[np.float64]) -> Units:
    """(n + k,) the item that each item waited for longest, or -1; see `situate.schedule.items`."""
    order = item_order(schedule, problem)
    by_turns = [items(schedule, problem) for items in (device_items, channel_items)]
    pairs = [*(turns(*occupied, order) for occupied in by_turns), _inputs(problem, schedule)]
    before, after = np.concatenate(pairs, axis=1)
    rising = np.lexsort((ends[before], after))
    # (n + k,) from pairs (p,) sorted by end, so that an item's latest predecessor is written last.
    waited = np.full(len(ends), -1)
    waited[after[rising]] = before[rising]
    return waited


def _inputs(problem: Problem, schedule: Schedule) -> Units:
    """(2, pairs) items and their successors by data: producers, transfers and readers."""
    edge = edge_tensors(problem)
    moved = problem.n + np.arange(len(schedule.tensor))
    to = zip(schedule.tensor.tolist(), schedule.target.tolist(), strict=True)
    # The transfer by (tensor, device); without one, the producer is on that device.
    brought = dict(zip(to, moved.tolist(), strict=True))
    places = schedule.placement[problem.consumers].tolist()
    producers = problem.producer[edge].tolist()
    before = [
        brought.get((tensor, place), producer)
        for tensor, place, producer in zip(edge.tolist(), places, producers, strict=True)
    ]
    # (2, k) each transfer waits for the op that makes its tensor.
    sent = np.stack((problem.producer[schedule.tensor], moved))
    return np.hstack((np.stack((np.array(before, np.int64), problem.consumers)), sent))
