"""Placed orders: a placement that is given, run by a list scheduler that keeps within memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate import _core
from situate.data.arrays import Placement
from situate.data.problem import UNLIMITED, Problem
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


MOST_PLACEMENTS = 6
"""Placements that are listed anew at most."""


def offer_placed_orders(search: Search) -> None:
    """Offer the best plan's placement in other orders, if they are better, where transfers are
    overlapped: each device runs the most urgent op after which all others can still run in turn.

    Where activations of slices fill memory a list scheduler without such foresight takes in what
    it cannot finish, and local search finds no way out.
    """
    if _affordable(search):
        _list_anew(search, search.incumbent.placement, URGENCIES)


def list_pipelines(search: Search, placements: Sequence[Placement]) -> None:
    """Offer placements of slices in the first of these orders, if they are better, those first
    whose busiest device has the least to do, then the best plan's in all.

    A pipeline that waits long in the order that was laid down for it may be the shortest without
    it.
    """
    problem = search.problem
    if problem.objective != "time" or problem.transfers != "overlapped":
        return
    busiest = [_busiest(problem, placement) for placement in placements]
    for number in np.argsort(busiest, kind="stable")[:MOST_PLACEMENTS].tolist():
        best = search.incumbent
        if not _affordable(search) or (best.feasible and busiest[number] >= best.value):
            break
        _list_anew(search, placements[number], URGENCIES[:1])
    offer_placed_orders(search)


def _busiest(problem: Problem, placement: Placement) -> float:
    """Seconds that the busiest device of a placement has to do."""
    seconds = problem.seconds[np.arange(problem.n), placement]
    return float(np.bincount(placement, seconds).max())


def _affordable(search: Search) -> bool:
    limit = search.evaluation_limit
    if limit is not None and limit - search.evaluations < MOST_EVALUATIONS:
        return False
    return search.problem.transfers == "overlapped" and search.affords(OFFERS_TO_LIST)


def _list_anew(
    search: Search, placement: Placement, urgencies: Sequence[tuple[float, float]]
) -> None:
    """Offer a placement in the order by each urgency, for a share of what is left."""
    line = np.array(search.problem.depth_first, np.int32)
    orders = _core.make_placed_orders(search.simulator.core, placement, line)
    end = search.budget_left() * (1 - ORDERS_SHARE)
    for urgency in urgencies:
        _offer_listed(search, orders, placement, urgency)
        if search.finished() or search.budget_left() < end or not search.affords(OFFERS_TO_LIST):
            return


def _offer_listed(
    search: Search, orders: _core.PlacedOrders, placement: Placement, urgency: tuple[float, float]
) -> None:
    """Offer the order by an urgency. A device that waits for room elsewhere does not wait when the
    order is decoded, so the first one may not fit."""
    problem, reserved = search.problem, np.zeros(search.problem.d, np.int64)
    for _ in range(TRIES):
        order = orders.order(*urgency, reserved)
        excess = search.consider(placement, order, "serial")
        if not excess or not search.affords(OFFERS_TO_LIST):
            return
        search.evaluations += 1
        _, [peak] = search.simulator.evaluate(
            placement[None], priority_of(order)[None], decoder="serial", threads=1
        )
        over = np.maximum(0, peak - problem.capacity)
        reserved = np.minimum(reserved, UNLIMITED - over) + over
