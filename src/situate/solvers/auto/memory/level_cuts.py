"""Segments of the network, one per device, with equal peaks: for the objective memory."""

from __future__ import annotations

import numpy as np

from situate.bounds.memory import level_share
from situate.data.arrays import Floats, Ints, Order
from situate.data.problem import Problem
from situate.data.topology import accelerators, folded_order, pipeline_order
from situate.solvers.heuristics import pipeline
from situate.solvers.line_cut import cut, live_bytes
from situate.solvers.search import Search

ROUNDS = 12
"""Largest number of cuts of a line, each adjusted by the peaks of the one before."""

SHARE = 0.5
"""Share of the budget after which cuts end."""

ROOM_FILLED = 0.98
"""Target share of a device's memory; the rest allows for segments of whole units."""

LEAST_CHANGE = 0.1
"""Least ratio of a device's peak to its level, so that an almost empty device does not take
everything."""


def offer_level_cuts(search: Search) -> None:
    """Offer cuts of lines of units by their live bytes, then pipelines with shifted borders.

    Devices come in both orders unless their memory is equal.
    """
    problem = search.problem
    if problem.objective != "memory" or problem.d < 2:
        return
    devices = _in_turn(problem)
    alike = len(set(problem.capacity.tolist())) == 1
    with search.budget.reserving(1 - SHARE):
        for line in (folded_order(problem), pipeline_order(problem)):
            for turn in (devices, devices[::-1])[: 1 if alike else 2]:
                _level(search, line, turn)
        if not search.finished():
            pipeline.run(search)


def _in_turn(problem: Problem) -> list[int]:
    """Devices along a line: accelerators in file order, and the CPUs behind them."""
    fast = accelerators(problem)
    return fast + [device for device in range(problem.d) if device not in fast]


def _level(search: Search, line: Order, turn: list[int]) -> None:
    """Offer cuts of a line; a segment shrinks by the ratio of its device's peak to its target."""
    problem = search.problem
    weight, order = live_bytes(problem), np.array(problem.graph.order, np.int32)
    room = ROOM_FILLED * problem.capacity[turn].astype(np.float64)
    share = np.minimum(room, weight.sum())
    for _ in range(ROUNDS):
        if search.finished():
            return
        peak = search.offer(cut(problem, turn, line, weight, share), order).schedule.peak[turn]
        share = share / np.maximum(peak / _level_peaks(peak, room), LEAST_CHANGE)


def _level_peaks(peak: Ints, room: Floats) -> Floats:
    """(devices,) equal peaks with the same sum; devices without room for that are full."""
    equal = level_share(int(peak.sum()), room.astype(np.int64).tolist())
    return np.asarray(np.minimum(np.maximum(room, 1.0), max(1, equal)))
