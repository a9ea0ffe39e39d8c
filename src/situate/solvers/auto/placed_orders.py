"""Placed orders: list schedules of a fixed placement that respect memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate import _core
from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.simulation.decoding import priority_of
from situate.solvers.search import Search

URGENCIES = ((1.0, 2.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0))
"""Weights of an op's place in depth-first order and of its longest path to the end. The first two
suit pipelines, the third keeps few slices in flight, and the last is upward rank."""

TRIES = 4
"""Largest number of schedules per urgency, each with less room by the excess of the one before."""

ORDERS_SHARE = 0.05
"""Share of the remaining budget after which no further urgency starts."""

OFFERS_TO_LIST = 5
"""One list schedule takes less time than so many offers."""

MOST_EVALUATIONS = 40
"""Largest number of evaluations for all urgencies."""


MOST_PLACEMENTS = 6
"""Largest number of placements to schedule again."""


def offer_placed_orders(search: Search) -> None:
    """Offer the incumbent's placement in other orders if they are better and transfers overlap.

    Each device runs the most urgent op after which all others can still run in turn. Without this
    foresight, a list scheduler starts slices that it cannot finish once activations fill memory,
    and local search does not repair that.
    """
    if _affordable(search):
        _list_anew(search, search.incumbent.placement, URGENCIES)


def list_pipelines(search: Search, placements: Sequence[Placement]) -> None:
    """Offer placements of slices by the first urgency if they are better, then the incumbent's by
    all urgencies.

    Placements with the least busiest device come first. A pipeline that waits long in its published
    order may be the shortest in another one.
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
    """Seconds of work of a placement's busiest device."""
    seconds = problem.seconds[np.arange(problem.n), placement]
    return float(np.bincount(placement, seconds).max())


def _affordable(search: Search) -> bool:
    limit = search.budget.evaluation_limit
    if limit is not None and limit - search.budget.evaluations < MOST_EVALUATIONS:
        return False
    return search.problem.transfers == "overlapped" and search.budget.affords(OFFERS_TO_LIST)


def _list_anew(
    search: Search, placement: Placement, urgencies: Sequence[tuple[float, float]]
) -> None:
    """Offer a placement in the order of each urgency, within a share of the remaining budget."""
    line = np.array(search.problem.depth_first, np.int32)
    orders = _core.search.make_placed_orders(search.simulator.core, placement, line)
    end = search.budget.remaining() * (1 - ORDERS_SHARE)
    for urgency in urgencies:
        _offer_listed(search, orders, placement, urgency)
        if (
            search.finished()
            or search.budget.remaining() < end
            or not search.budget.affords(OFFERS_TO_LIST)
        ):
            return


def _offer_listed(
    search: Search,
    orders: _core.search.PlacedOrders,
    placement: Placement,
    urgency: tuple[float, float],
) -> None:
    """Offer a placement in the order of an urgency.

    The list schedule may wait for room on another device, but decoders do not wait. So the first
    order may not fit, and later ones reserve room.
    """
    problem, reserved = search.problem, np.zeros(search.problem.d, np.int64)
    for _ in range(TRIES):
        order = orders.order(*urgency, reserved)
        excess = search.consider(placement, order, "serial")
        if not excess or not search.budget.affords(OFFERS_TO_LIST):
            return
        search.budget.evaluations += 1
        _, [peak] = search.simulator.evaluate(
            placement[None], priority_of(order)[None], decoder="serial", threads=1
        )
        over = np.maximum(0, peak - problem.capacity)
        reserved = np.minimum(reserved, UNLIMITED - over) + over
