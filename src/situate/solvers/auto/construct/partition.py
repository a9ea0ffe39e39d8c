"""A partition of the units with few bytes between devices."""

from __future__ import annotations

import numpy as np

from situate.data.topology import accelerators
from situate.solvers.partitioners.bisection import Bisection
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.search import Search

OFFERS_A_LEVEL = 12
"""Each level of the recursive bisection takes less time than so many offers."""

PARTITION_SHARE = 0.5
"""Largest share of the remaining time for the partition."""


def offer_partition(search: Search) -> None:
    """Offer a partition of `partition_dfs` in the graph's order and the search's second order.

    If branches of the network do not depend on one another, list rules send too much, and
    contiguous segments leave devices idle. A partition is a better start then. It ignores memory,
    so it is dropped if nothing fits: few bytes too many may still be far from a feasible plan.
    """
    problem, devices = search.problem, accelerators(search.problem)
    if problem.objective != "time" or problem.transfers != "overlapped" or len(devices) < 2:
        return
    levels = (len(devices) - 1).bit_length()
    if not search.budget.affords(OFFERS_A_LEVEL * levels / PARTITION_SHARE):
        return
    mapping, before = Mapping.onto(problem, devices), search.best
    part = Bisection(mapping).parts(np.random.default_rng(search.seed))
    search.offer(mapping.placement(part), np.array(problem.graph.order, np.int32))
    if before is not None and not search.incumbent.feasible:
        search.best = before
