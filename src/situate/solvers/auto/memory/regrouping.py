"""Regrouped orders: parts of an order around its peak, each rearranged optimally."""

from __future__ import annotations

import math

from situate import _core
from situate.data.arrays import Order
from situate.simulation.decoding import order_of
from situate.solvers.auto.memory.frugal_order import frugal_order
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

SHARE = 0.1
"""Largest share of the remaining time for regrouping one order."""

SETS, SETS_IN_TIME = 50_000, 2**40
"""Largest number of sets of ops per order, without and with a time limit. A time limit ends the
search long before its number is reached."""

OFFERS_TO_REGROUP = 5
"""Setup takes less time than so many offers."""


def offer_regrouped(search: Search) -> None:
    """Offer the incumbent's placement in its own order, regrouped, if it is on one device; then in
    the frugal order, regrouped.

    If the frugal order is the search's second order, the regrouped one replaces it.
    """
    offer_own_regrouped(search)
    if _worthwhile(search):
        frugal = frugal_order(search) if search.second_order is None else search.second_order
        regrouped = _offer(search, frugal)
        if frugal is search.second_order:
            search.second_order = regrouped


def offer_own_regrouped(search: Search) -> None:
    """Offer the incumbent in its own order, regrouped, if it is on one device."""
    best = search.incumbent
    if _worthwhile(search) and _on_one_device(best):
        _offer(search, order_of(search.problem, best.schedule))


def _worthwhile(search: Search) -> bool:
    """True if fewer live bytes would help and there is time to find them."""
    problem = search.problem
    saves_bytes = problem.objective == "memory" or not search.incumbent.feasible
    live = problem.rules.memory != "persistent"
    return (
        saves_bytes and live and not search.finished() and search.budget.affords(OFFERS_TO_REGROUP)
    )


def _on_one_device(candidate: Candidate) -> bool:
    return bool((candidate.placement == candidate.placement[0]).all())


def _offer(search: Search, order: Order) -> Order:
    """Regroup an order and offer the incumbent's placement in it if it is better; the new order."""
    best, limit = search.incumbent, search.budget.time_limit
    seconds_left = (
        math.inf if limit is None else limit * (1 - search.budget.reserve) - search.budget.seconds
    )
    regrouped = _core.search.regrouped_order(
        search.simulator.core,
        order,
        target=_few_enough(search, best),
        sets=SETS if limit is None else SETS_IN_TIME,
        seconds=SHARE * seconds_left,
    )
    search.consider(best.placement, regrouped, "serial")
    return regrouped


def _few_enough(search: Search, candidate: Candidate) -> int:
    """Target bytes of tensors and workspaces for a plan on one device; 0 for other plans.

    The target is the lower bound for memory, else the device's capacity, less persistent bytes.
    """
    problem = search.problem
    if not _on_one_device(candidate):
        return 0
    by_memory = problem.objective == "memory"
    room = int(search.lower_bound if by_memory else problem.capacity[candidate.placement[0]])
    return room - int(problem.persistent.sum())
