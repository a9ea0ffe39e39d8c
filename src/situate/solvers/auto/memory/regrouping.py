"""Orders regrouped: parts of an order around its fullest moment, each put in its best order."""

from __future__ import annotations

import math

from situate import _core
from situate.data.arrays import Order
from situate.simulation.decoding import order_of
from situate.solvers.auto.memory.frugal_order import frugal_order
from situate.solvers.search import Candidate, Search

SHARE = 0.1
"""Share of the time left that regrouping one order may take at most."""

SETS, SETS_IN_TIME = 50_000, 2**40
"""Sets of ops that may be looked at for one order: without a time limit, for then the clock must
not decide, and with one, which is spent long before so many."""

OFFERS_TO_REGROUP = 5
"""Offers that take longer than the work before the first part."""


def offer_regrouped(search: Search) -> None:
    """Offer the best plan's placement in its own order, regrouped, where that is on one device, and
    in the frugal order, regrouped. Where plans are tried in the frugal order beside their own, they
    are in the regrouped one from now on."""
    offer_own_regrouped(search)
    if _worthwhile(search):
        frugal = frugal_order(search) if search.second_order is None else search.second_order
        regrouped = _offer(search, frugal)
        if frugal is search.second_order:
            search.second_order = regrouped


def offer_own_regrouped(search: Search) -> None:
    """Offer the best plan in its own order, regrouped, where it is on one device."""
    best = search.incumbent
    if _worthwhile(search) and _on_one_device(best):
        _offer(search, order_of(search.problem, best.schedule))


def _worthwhile(search: Search) -> bool:
    """True where fewer bytes in use are sought and there is time to look for them."""
    problem = search.problem
    saves_bytes = problem.objective == "memory" or not search.incumbent.feasible
    live = problem.rules.memory != "persistent"
    return saves_bytes and live and not search.finished() and search.affords(OFFERS_TO_REGROUP)


def _on_one_device(candidate: Candidate) -> bool:
    return bool((candidate.placement == candidate.placement[0]).all())


def _offer(search: Search, order: Order) -> Order:
    """Offer the best plan's placement in an order, regrouped, if it is better; the order."""
    best, limit = search.incumbent, search.time_limit
    seconds_left = math.inf if limit is None else limit * (1 - search.reserve) - search.seconds
    regrouped = _core.regrouped_order(
        search.simulator.core,
        order,
        target=_few_enough(search, best),
        sets=SETS if limit is None else SETS_IN_TIME,
        seconds=SHARE * seconds_left,
    )
    search.consider(best.placement, regrouped, "serial")
    return regrouped


def _few_enough(search: Search, candidate: Candidate) -> int:
    """Bytes of tensors and workspaces that need not be fewer: on the one device of a plan those
    that the bound leaves, or where another objective is sought the device's memory."""
    problem = search.problem
    if not _on_one_device(candidate):
        return 0
    by_memory = problem.objective == "memory"
    room = int(search.lower_bound if by_memory else problem.capacity[candidate.placement[0]])
    return room - int(problem.persistent.sum())
