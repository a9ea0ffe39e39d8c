"""The phase that makes plans fit memory: spilled or moved units, and annealing for memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors, op_devices, unit_devices
from situate.solvers.auto.improve.annealing import anneal_for
from situate.solvers.auto.orders import offer_regrouped
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

FIT_SHARE = 0.5
"""Share of the budget reserved while annealing looks for a plan that fits."""

REPAIR_SHARE = 0.1
"""Largest share of the remaining budget for moving units at a cut."""

SPILL_ROUNDS = 30
"""Largest number of rounds of spilling."""

SPILL_MARGIN = 1.02
"""A device above its limit gives up this many times its excess."""


def repair(search: Search) -> None:
    """While nothing fits, anneal placements and orders for memory, with up to half of the budget.

    Orders decide how many tensors are live at once.
    """
    problem = search.problem
    if problem.objective == "memory" or problem.rules.memory == "persistent":
        return
    if search.incumbent.feasible:
        return
    with search.budget.reserving(FIT_SHARE):
        offer_regrouped(search)
        if not search.finished() and not search.incumbent.feasible:
            anneal_for(search, "memory", to_fit=True)


def move_until_it_fits(search: Search, candidate: Candidate) -> None:
    """Move units to devices with which they exchange tensors, largest tensors first, while the plan
    gets closer to feasible; offer the result."""
    problem, score = search.problem, candidate.score
    of_unit = unit_devices(problem, candidate.placement)
    end, bettered = search.budget.remaining() * (1 - REPAIR_SHARE), True
    while bettered and score[0]:
        bettered = False
        for unit, device in _across(problem, of_unit):
            if search.budget.remaining() <= end or not score[0]:
                break
            changed = of_unit.copy()
            changed[unit] = device
            new = search.estimate(op_devices(problem, changed), candidate.order, "eager")
            # First improvement: every pair costs a decoding, so the list is remade only after a
            # whole pass.
            if new < score:
                of_unit, score, bettered = changed, new, True
    search.offer(op_devices(problem, of_unit), candidate.order)


def _across(problem: Problem, of_unit: NDArray[np.int32]) -> list[tuple[int, int]]:
    """(unit, device) pairs in which the unit exchanges tensors with units on another device."""
    source = problem.unit[edge_producers(problem)]
    reader = problem.unit[problem.consumers]
    apart = np.flatnonzero(of_unit[source] != of_unit[reader])
    # (edges across,) largest tensors first; each end of an edge may move to the other's device.
    apart = apart[np.argsort(-problem.size[edge_tensors(problem)[apart]], kind="stable")]
    # (2 * edges across,) alternating: the producer's unit, the reader's unit, ...
    ends = np.column_stack((source[apart], reader[apart])).ravel()
    there = of_unit[np.column_stack((reader[apart], source[apart])).ravel()]
    pairs = dict.fromkeys(zip(ends.tolist(), there.tolist(), strict=True))
    return [(unit, device) for unit, device in pairs if problem.allowed[unit, device]]


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
        # One target per device and round; the next round sees a remaining excess.
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
