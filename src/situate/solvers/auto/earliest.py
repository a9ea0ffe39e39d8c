"""Baechi's list rules, which respect memory, prefer accelerators and wait for children."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.solvers.heuristics.favourite_children import critical_children
from situate.solvers.heuristics.list_rules import offer_earliest
from situate.solvers.search import Search

OFFERS = 60
"""Time needed for both rules, in offers: three times their duration. Shorter searches need the time
for other parts."""


def offer_earliest_rules(search: Search) -> None:
    """Offer the plan of `m_etf`, and that of `m_sct` with critical children as favourites, which
    need no linear program.

    If nothing fits, these plans are dropped. A device that fills up in the order of the step lacks
    few bytes but may be far from a feasible plan.
    """
    problem, before = search.problem, search.best
    if problem.objective != "time" or problem.transfers == "atomic":
        return
    if not search.budget.affords(OFFERS):
        return
    offer_earliest(search, np.full(problem.n, -1, np.int32))
    if not search.finished():
        rank = _core.search.upward_rank(search.simulator.core)
        offer_earliest(search, critical_children(problem, rank))
    if before is not None and not search.incumbent.feasible:
        search.best = before
