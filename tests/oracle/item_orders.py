"""The shortest step of a small problem whose transfers are blocking, by brute force.

All placements, and all orders of ops and transfers, as docs/execution-model.md takes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from situate.data.problem import Problem
from tests.oracle.case import Case, Move
from tests.oracle.memory import peaks
from tests.oracle.serial import needs
from tests.oracle.times import Times

Item = int | Move
"""An op by its index, or a transfer."""


@dataclass(frozen=True)
class Way:
    """Items that were taken, and when devices, channels and results are free after them."""

    order: tuple[Item, ...]
    device_free: tuple[float, ...]
    channel_free: tuple[float, ...]
    starts: dict[int | tuple[int, int], float]
    ends: dict[int | tuple[int, int], float]

    def is_no_later(self, other: Way) -> bool:
        """True where nothing is free later than after the other way to take the same items."""
        mine = (*self.device_free, *self.channel_free, *self.ends.values())
        theirs = (*other.device_free, *other.channel_free, *(other.ends[k] for k in self.ends))
        return all(a <= b for a, b in zip(mine, theirs, strict=True))


def best_time(problem: Problem, limit: float = math.inf) -> float:
    """Seconds of the shortest step that fits in memory: `limit` if no step is shorter, infinite
    if none fits.

    Ways to take the same items are compared where memory cannot be short: one that leaves nothing
    free sooner than another cannot end sooner.
    """
    best = limit
    for placement in _placements(problem):
        case = Case(problem, placement, np.zeros(problem.n))
        best = min(best, _best_of(case, best))
    return best


def _placements(problem: Problem) -> Iterator[np.ndarray]:
    choices = [np.flatnonzero(may).tolist() for may in problem.allowed]
    for devices in product(*choices):
        yield np.array(devices, np.int32)[problem.unit]


def _best_of(case: Case, best: float) -> float:
    problem = case.problem
    total = sum(int(b.sum()) for b in (problem.persistent, problem.workspace))
    total += int(problem.size.sum())
    ample = total <= problem.capacity.min()
    ways_of: dict[frozenset[int | tuple[int, int]], list[Way]] = {}
    channels = 1 + max((move.channel for move in case.moves), default=0)
    nothing = Way((), (0.0,) * problem.d, (0.0,) * channels, {}, {})

    def extend(way: Way) -> None:
        nonlocal best
        if max(way.device_free) >= best:
            return
        if len(way.order) == len(case.ops) + len(case.moves):
            if ample or _fits(case, way):
                best = max(way.device_free)
            return
        if ample:
            ways = ways_of.setdefault(frozenset(way.ends), [])
            if any(other.is_no_later(way) for other in ways):
                return
            ways.append(way)
        for item in _open(case, way):
            extend(_extended(case, way, item))

    extend(nothing)
    return best


def _open(case: Case, way: Way) -> list[Item]:
    """Items not taken yet all of whose inputs are."""
    ended = way.ends.keys()
    ops = [j for j in case.ops if j not in ended and needs(case, j) <= ended]
    moves = [m for m in case.moves if m.key not in ended and case.producer[m.tensor] in ended]
    return [*ops, *moves]


def _extended(case: Case, way: Way, item: Item) -> Way:
    """The way with one more item, which starts when all that it needs is free."""
    free, channel = list(way.device_free), list(way.channel_free)
    if isinstance(item, Move):
        start = max(free[item.source], free[item.target], way.ends[case.producer[item.tensor]])
        if case.problem.rules.contention:
            start = max(start, channel[item.channel])
        end = start + item.seconds
        free[item.source] = free[item.target] = channel[item.channel] = end
        key: int | tuple[int, int] = item.key
    else:
        here = case.device[item]
        start = max([free[here]] + [_arrival(case, way, t, here) for t in case.inputs[item]])
        free[here] = end = start + case.seconds[item]
        key = item
    starts, ends = {**way.starts, key: start}, {**way.ends, key: end}
    return Way((*way.order, item), tuple(free), tuple(channel), starts, ends)


def _arrival(case: Case, way: Way, tensor: int, here: int) -> float:
    produced = way.ends[case.producer[tensor]]
    if case.home(tensor) == here:
        return produced
    if case.is_signal(tensor):
        return produced + case.problem.cluster.synchronisation
    return way.ends[tensor, here]


def _fits(case: Case, way: Way) -> bool:
    """True where the oracle's peaks are within the capacities."""
    times = Times(case)
    for item in way.order:
        if isinstance(item, Move):
            times.start_move(item, way.starts[item.key])
        else:
            times.start_op(item, way.starts[item])
    return bool((np.array(peaks(case, times)) <= case.problem.capacity).all())
