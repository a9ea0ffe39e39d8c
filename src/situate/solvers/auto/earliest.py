"""Baechi's list rules, which keep to memory and to accelerators, and wait for children."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.solvers.heuristics.favourite_children import critical_children
from situate.solvers.heuristics.m_etf import offer_earliest
from situate.solvers.search import Search

OFFERS = 60
"""Offers that take three times as long as both rules: what has no time for so many needs it for
other parts."""


def offer_earliest_rules(search: Search) -> None:
    """Offer the plan of `m_etf`, and that of `m_sct` where the favourite child of an op is the one
    that the longest rest of the step waits for: no linear program has to be solved for that.

    Where nothing fits these plans do not count: a device that is filled in the order of the step
    lacks few bytes, and yet is far from what fits.
    """
    problem, before = search.problem, search.best
    if problem.objective != "time" or problem.transfers == "atomic":
        return
    if not search.affords(OFFERS):
        return
    offer_earliest(search, np.full(problem.n, -1, np.int32))
    if not search.finished():
        rank = _core.upward_rank(search.simulator.core)
        offer_earliest(search, critical_children(problem, rank))
    if before is not None and not search.incumbent.feasible:
        search.best = before
