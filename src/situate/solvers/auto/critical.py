"""Critical transfers, for which the end of the step waits, and moves that avoid them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.data.topology import edge_tensors, folded_order, op_devices, unit_devices
from situate.schedule.items import channel_items, device_items, item_order, turns
from situate.schedule.schedule import Schedule
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

CRITICAL_SHARE = 0.1
"""Largest share of the remaining budget for critical moves."""

MOST_UNITS = 256
"""Largest number of units in a move; lengths are powers of two."""

MOST_READERS = 2
"""Number of a transfer's readers around which moves begin."""

Units = Ints


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
