"""Segments of the network, one a device, whose peaks are level: for the objective memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.topology import accelerators, folded_order, pipeline_order
from situate.solvers.line_cut import cut, live_bytes
from situate.solvers.search import Search

ROUNDS = 12
"""Cuts of a line at most, each after the peaks of the one before."""

SHARE = 0.5
"""Share of what is left of the budget that goes to cuts, at most."""

LEAST_CHANGE = 0.1
"""Least factor by which a segment grows or shrinks, so that a device that is almost empty does not
take it all."""


def offer_level_cuts(search: Search) -> None:
    """Offer cuts of lines of units by the bytes that their ops hold and hand on; a segment shrinks
    by as much as its device is fuller than the bound, or its capacity, allows."""
    problem = search.problem
    if problem.objective != "memory" or problem.d < 2:
        return
    weight, order = live_bytes(problem), np.array(problem.graph.order, np.int32)
    turn = _turn(problem)
    level = np.minimum(problem.capacity[turn], max(1.0, search.lower_bound))
    end = (1 - SHARE) * search.left()
    for line in _lines(problem):
        share = level
        for _ in range(ROUNDS):
            if search.finished() or search.left() <= end:
                return
            found = search.offer(cut(problem, turn, line, weight, share), order)
            fullness = found.schedule.peak[turn] / level
            share = share / np.maximum(fullness / fullness.mean(), LEAST_CHANGE)


def _turn(problem: Problem) -> list[int]:
    """Devices along a line: accelerators in file order, and the CPUs behind them."""
    fast = accelerators(problem)
    return fast + [device for device in range(problem.d) if device not in fast]


def _lines(problem: Problem) -> Iterator[Order]:
    """Lines of units: backward ops beside the forward ops that they read from, and depth first."""
    yield folded_order(problem)
    yield pipeline_order(problem)
