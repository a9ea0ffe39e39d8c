"""Placed orders: a placement that is given, run by a list scheduler that keeps within memory."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.solvers.search import Search

URGENCIES = ((1.0, 2.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0))
"""Weights of an op's turn, and of the longest way from it to the end of the step: the first two
suit pipelines, the third runs as few slices at once as devices have work for, the last is upward
rank."""

OFFERS_TO_LIST = 5
"""Offers that take longer than one list schedule."""


def offer_placed_orders(search: Search) -> None:
    """Offer the best plan's placement in other orders, if they are better, where transfers are
    overlapped: each device runs the most urgent op with which all others can still run in turn.

    Where activations of slices fill memory a list scheduler without such foresight takes in what
    it cannot finish, and local search finds no way out.
    """
    problem = search.problem
    if problem.transfers != "overlapped" or not search.affords(OFFERS_TO_LIST):
        return
    placement = search.incumbent.placement
    line = np.array(problem.depth_first, np.int32)
    orders = _core.make_placed_orders(search.simulator.core, placement, line)
    for turn, path in URGENCIES:
        if search.finished() or not search.affords(OFFERS_TO_LIST):
            return
        search.consider(placement, orders.order(turn, path), "serial")
