"""Device swap: two devices exchange all their units if the plan gets better."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, may_run, op_devices, unit_devices
from situate.solvers.search import Search

SWAP_SHARE = 0.02
"""Largest share of the budget for swaps."""


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
