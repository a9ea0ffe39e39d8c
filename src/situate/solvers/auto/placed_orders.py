"""Placed orders: a placement that is given, run by a list scheduler that keeps within memory."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.data.arrays import Order, Placement
from situate.data.problem import UNLIMITED
from situate.simulation.decoding import priority_of
from situate.solvers.search import Search

URGENCIES = ((1.0, 2.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0))
"""Weights of an op's turn, and of the longest way from it to the end of the step: the first two
suit pipelines, the third runs as few slices at once as devices have work for, the last is upward
rank."""

TRIES = 4
"""Schedules by one urgency at most, each with so much less room as the one before lacked."""

ORDERS_SHARE = 0.05
"""Share of what is left of the budget after which no other urgency is tried."""

OFFERS_TO_LIST = 5
"""Offers that take longer than one list schedule."""

MOST_EVALUATIONS = 40
"""Evaluations that all urgencies take at most."""


def offer_placed_orders(search: Search) -> None:
    """Offer the best plan's placement in other orders, if they are better, where transfers are
    overlapped: each device runs the most urgent op after which all others can still run in turn.

    Where activations of slices fill memory a list scheduler without such foresight takes in what
    it cannot finish, and local search finds no way out.
    """
    problem = search.problem
    if problem.transfers != "overlapped" or not _affordable(search):
        return
    placement = search.incumbent.placement
    line = np.array(problem.depth_first, np.int32)
    orders = _core.make_placed_orders(search.simulator.core, placement, line)
    end = search.left() * (1 - ORDERS_SHARE)
    for urgency in URGENCIES:
        search.consider(placement, _listed(search, orders, placement, urgency), "serial")
        if search.finished() or search.left() < end or not search.affords(OFFERS_TO_LIST):
            return


def _affordable(search: Search) -> bool:
    limit = search.evaluation_limit
    if limit is not None and limit - search.evaluations < MOST_EVALUATIONS:
        return False
    return search.affords(OFFERS_TO_LIST)


def _listed(
    search: Search, orders: _core.PlacedOrders, placement: Placement, urgency: tuple[float, float]
) -> Order:
    """The order by an urgency. A device that waits for room elsewhere does not wait when the order
    is decoded, so the first one may not fit."""
    problem, reserved = search.problem, np.zeros(search.problem.d, np.int64)
    for _ in range(TRIES):
        order = orders.order(*urgency, reserved)
        search.evaluations += 1
        _, [peak] = search.simulator.evaluate(
            placement[None], priority_of(order)[None], decoder="serial", threads=1
        )
        over = np.maximum(0, peak - problem.capacity)
        if not over.any() or not search.affords(OFFERS_TO_LIST):
            break
        reserved = np.minimum(reserved, UNLIMITED - over) + over
    return order
