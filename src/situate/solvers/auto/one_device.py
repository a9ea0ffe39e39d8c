"""A plan on one device instead of several, if contention between devices costs as much as the
parallel plan gains."""

from __future__ import annotations

import numpy as np

from situate.results.expected import expected_seconds
from situate.solvers.search import Search


def candidates(search: Search) -> int:
    """Number of plans that `keep_to_one_device` may evaluate."""
    problem = search.problem
    if problem.costs is None or problem.objective != "time":
        return 0
    return int(problem.allowed.all(axis=0).sum())


def keep_to_one_device(search: Search) -> None:
    """Take the best plan on one device if a plan on several is faster by no more than the expected
    contention between devices."""
    problem, best = search.problem, search.best
    if not candidates(search) or best is None or not best.feasible:
        return
    if len(np.unique(best.placement)) == 1:
        return
    margin = expected_seconds(problem, best.schedule) - best.schedule.makespan
    order = np.array(problem.graph.program_order, np.int32)
    devices = np.flatnonzero(problem.allowed.all(axis=0)).tolist()
    search.prefer([np.full(problem.n, device, np.int32) for device in devices], order, margin)
