"""Orders regrouped: parts of an order around its fullest moment, each put in its best order."""

from __future__ import annotations

import math

import numpy as np

from situate import _core
from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.simulation.decoding import order_of
from situate.solvers.auto.memory.frugal_order import frugal_order
from situate.solvers.search import Found, Search

SHARE = 0.1
"""Share of the time left that regrouping one order may take at most."""

SETS, SETS_IN_TIME = 50_000, 2**40
"""Sets of ops that may be looked at for one order: without a time limit, which must not depend on
the machine, and with one, which then ends it."""

OFFERS_TO_REGROUP = 5
"""Offers that take longer than the work before the first part."""


def offer_regrouped(search: Search) -> None:
    """Offer the best plan's placement in the frugal order, regrouped, and where it is on one device
    in its own, regrouped; if they are better. Where plans are tried in the frugal order beside
    their own, that is the regrouped one from now on."""
    problem, best = search.problem, search.incumbent
    if problem.rules.memory == "persistent" or problem.transfers == "atomic":
        return
    frugal = frugal_order(search) if search.second_order is None else search.second_order
    alone = len(np.unique(best.placement)) == 1
    for order in (order_of(problem, best.schedule), frugal) if alone else (frugal,):
        if search.finished() or not search.affords(OFFERS_TO_REGROUP):
            return
        regrouped = _regrouped(search, order, _few_enough(search, best) if alone else 0)
        search.consider(best.placement, regrouped, "serial")
        if order is search.second_order:
            search.second_order = regrouped


def _regrouped(search: Search, order: Order, target: int) -> Order:
    limit = search.time_limit
    left = math.inf if limit is None else limit * (1 - search.reserve) - search.seconds
    return _core.regrouped_order(
        search.simulator.core,
        order,
        target=target,
        sets=SETS if limit is None else SETS_IN_TIME,
        seconds=SHARE * left,
    )


def _few_enough(search: Search, found: Found) -> int:
    """Bytes of tensors and workspaces on the one device of a plan that need not be fewer: those
    that the bound leaves, or where another objective is sought the device's memory."""
    problem: Problem = search.problem
    room = int(problem.capacity[found.placement[0]])
    if problem.objective == "memory":
        room = int(search.lower_bound)
    return room - int(problem.persistent.sum())
