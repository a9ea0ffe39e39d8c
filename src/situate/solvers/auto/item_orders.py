"""Branch and bound for orders of ops and transfers of small problems with blocking transfers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from situate import _core
from situate.bounds.rounding import rounding
from situate.data.arrays import Order, Placement
from situate.simulation.transfer_order import TransferOrder
from situate.solvers.search import Search

STEPS = 2_000_000
"""Largest number of items to try for one placement."""

ITEMS_SHARE = 0.5
"""Largest share of the remaining budget for this search."""

Goal = Literal["time", "memory", "fit"]
"""The value that an order decides; with `fit` it only decides feasibility."""


def order_items(search: Search, placements: Sequence[tuple[Placement, float]]) -> bool:
    """Offer the best order of ops and transfers of every placement; True if the search was
    exhaustive.

    Args:
        placements: (n,) each, with a lower bound on the value of its plans; the most promising
            first.
    """
    end = search.budget.remaining() * (1 - ITEMS_SHARE)
    for placement, least in placements:
        if search.proved() or not _promises(search, least):
            continue
        steps = _steps_left(search, end)
        if (
            search.budget.remaining() <= end
            or not steps
            or not _offer_best(search, placement, least, steps)
        ):
            return False
    return True


def _promises(search: Search, least: float) -> bool:
    return search.incumbent.excess > 0 or least < _to_beat(search)


def _to_beat(search: Search) -> float:
    """A value that is better than the incumbent by more than rounding."""
    return search.incumbent.value * (1 - 2 * rounding(search.problem))


def _steps_left(search: Search, end: float) -> int:
    """Remaining number of items to try; an evaluation counts as n items, like a decoding."""
    if search.budget.evaluation_limit is None:
        return STEPS
    budget = (
        (search.budget.remaining() - end)
        * search.budget.evaluation_limit
        * (1 - search.budget.reserve)
    )
    return min(STEPS, max(0, int(budget)) * search.problem.n)


def _offer_best(search: Search, placement: Placement, least: float, steps: int) -> bool:
    """Offer the best order of a placement if it beats the incumbent; False if there was no time for
    all orders."""
    objective = search.problem.objective
    goal: Goal = "fit" if objective == "throughput" else objective
    exhausted, steps_taken, order, sent = _core.search.best_item_order(
        search.simulator.core,
        placement,
        goal,
        excess=search.incumbent.excess,
        value=_to_beat(search),
        known=least,
        steps=steps,
        seconds=_seconds_left(search),
    )
    search.budget.evaluations += math.ceil(steps_taken / search.problem.n)
    if len(order):
        _offer(search, placement, order, TransferOrder(*sent))
    return exhausted


def _seconds_left(search: Search) -> float:
    if search.budget.time_limit is None:
        return math.inf
    return max(0.0, search.budget.time_limit * (1 - search.budget.reserve) - search.budget.seconds)


def _offer(search: Search, placement: Placement, order: Order, sent: TransferOrder) -> None:
    """Offer an order with transfers as urgent as their readers, and with their own urgency."""
    search.offer(placement, order)
    search.offer(placement, order, ["serial"], transfers=sent)
