"""Proportional cuts: one segment of the network per device, with its share of the work or of the
bytes. Units that do not fit spill to other devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, op_devices, pipeline_order, unit_devices
from situate.solvers.auto.stages import follow
from situate.solvers.incumbent import Candidate
from situate.solvers.line_cut import cut
from situate.solvers.search import Search

SPILL_ROUNDS = 30
"""Largest number of rounds of spilling."""

SPILL_MARGIN = 1.02
"""A device above its limit gives up this many times its excess."""


def offer_proportional_cuts(search: Search) -> None:
    """Offer a cut by seconds and one by persistent bytes, with spilling until they fit.

    If a device cannot hold everything, also offer stages by bytes. While nothing fits, also spill
    the best plan.
    """
    problem = search.problem
    order = np.array(problem.graph.order, np.int32)
    for placement in (by_seconds(problem), by_bytes(problem)):
        offer_until_it_fits(search, placement, order)
        if search.finished():
            return
    if problem.persistent.sum() > problem.capacity.min():
        search.offer(follow(problem, _along_the_pipeline(problem)), order)
    incumbent = search.incumbent
    if not incumbent.feasible:
        offer_until_it_fits(search, incumbent.placement, incumbent.order)


def by_seconds(problem: Problem) -> Placement:
    """Placement (n,) along the pipeline; segments are proportional to the accelerators' speeds."""
    devices = accelerators(problem)
    seconds = np.where(np.isfinite(problem.seconds), problem.seconds, 0)[:, devices]
    weight = np.zeros(problem.units)
    np.add.at(weight, problem.unit, seconds.mean(axis=1))
    speed = 1 / np.maximum(seconds.sum(axis=0), 1e-300)
    return cut(problem, devices, pipeline_order(problem), weight, speed)


def by_bytes(problem: Problem) -> Placement:
    """Placement (n,) in topological order; segments are proportional to accelerators' memory."""
    units = problem.unit[list(problem.graph.order)]
    # (n,) units of the ops in order -> (units,) units by their first op.
    _, first = np.unique(units, return_index=True)
    line = units[np.sort(first)]
    return _cut_by_bytes(problem, line)


def _along_the_pipeline(problem: Problem) -> Placement:
    return _cut_by_bytes(problem, pipeline_order(problem))


def _cut_by_bytes(problem: Problem, line: NDArray[np.int32]) -> Placement:
    devices = accelerators(problem)
    capacity = problem.capacity[devices].astype(np.float64)
    return cut(problem, devices, line, problem.unit_persistent.astype(np.float64), capacity)


def offer_until_it_fits(search: Search, placement: Placement, order: NDArray[np.int32]) -> None:
    """Offer the plan; while it does not fit, move units that cost little time for their bytes."""
    candidate = search.offer(placement, order)
    for _ in range(SPILL_ROUNDS):
        if candidate.feasible or search.finished():
            return
        spilled = spill(search.problem, candidate)
        if (spilled == candidate.placement).all():
            return
        candidate = search.offer(spilled, order)


def spill(problem: Problem, candidate: Candidate) -> Placement:
    """Placement (n,) in which every device above its limit has given up about its excess.

    Units that lose the fewest seconds per persistent byte move first, to the device with the most
    room.
    """
    over = candidate.schedule.overflow(problem)
    room = (problem.capacity - candidate.schedule.peak).astype(np.float64)
    of_unit = unit_devices(problem, candidate.placement)
    persistent, seconds = problem.unit_persistent.astype(np.float64), problem.unit_seconds
    for device in np.flatnonzero(over):
        target = int(room.argmax())
        if room[target] <= 0:
            break
        units = np.flatnonzero((of_unit == device) & (persistent > 0) & problem.allowed[:, target])
        # (candidates,) seconds lost per byte that leaves the device.
        loss = (seconds[units, target] - seconds[units, device]) / persistent[units]
        units = units[np.argsort(loss, kind="stable")]
        # (candidates,) cumulative bytes freed; just enough units move.
        freed = np.cumsum(persistent[units])
        enough = np.searchsorted(freed, min(over[device] * SPILL_MARGIN, room[target])) + 1
        of_unit[units[:enough]] = target
        room[target] -= freed[:enough][-1] if len(units) else 0.0
    return op_devices(problem, of_unit)
