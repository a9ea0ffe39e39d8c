"""A plan on one device in place of one on several, where devices that work at once cost one another
as much as the several gain."""

from __future__ import annotations

import numpy as np

from situate.results.expected import expected_seconds
from situate.solvers.search import Search


def candidates(search: Search) -> int:
    """Plans that `keep_to_one_device` may look at."""
    problem = search.problem
    if problem.costs is None or problem.objective != "time":
        return 0
    return int(problem.allowed.all(axis=0).sum())


def keep_to_one_device(search: Search) -> None:
    """Take the best plan on one device where that on several is faster by no more than what devices
    are expected to cost one another."""
    problem, best = search.problem, search.best
    if not candidates(search) or best is None or not best.feasible:
        return
    if len(np.unique(best.placement)) == 1:
        return
    margin = expected_seconds(problem, best.schedule) - best.schedule.makespan
    order = np.array(problem.graph.program_order, np.int32)
    devices = np.flatnonzero(problem.allowed.all(axis=0)).tolist()
    search.prefer([np.full(problem.n, device, np.int32) for device in devices], order, margin)
