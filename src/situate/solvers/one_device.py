"""Whether one device does as well as several, once what the execution model leaves out counts."""

from __future__ import annotations

import numpy as np

from situate.schedule import Schedule
from situate.solvers.search import Search


def keep_to_one_device(search: Search) -> None:
    """Take the best plan on one device where that on several is faster by no more than it costs to
    run several: what costs measured of a step on them, and the time that whoever sends a tensor is
    busy for it, which the execution model lets overlap with its ops."""
    problem, best = search.problem, search.best
    if problem.costs is None or problem.objective != "time" or best is None or not best.feasible:
        return
    if len(np.unique(best.placement)) == 1:
        return
    margin = problem.costs.step + _sending(best.schedule, problem.d) * problem.costs.synchronisation
    order = np.array(problem.graph.order, np.int32)
    devices = np.flatnonzero(problem.allowed.all(axis=0)).tolist()
    search.prefer([np.full(problem.n, device, np.int32) for device in devices], order, margin)


def _sending(schedule: Schedule, devices: int) -> int:
    """The most tensors that any device sends: once each, whoever receives them."""
    sent = np.unique(np.stack((schedule.source, schedule.tensor)), axis=1)[0]
    return int(np.bincount(sent, minlength=devices).max(initial=0))
