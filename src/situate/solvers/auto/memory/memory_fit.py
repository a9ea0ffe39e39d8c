"""Segments of the network, one per accelerator, sized by their live bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.data.topology import (
    accelerators,
    edge_producers,
    edge_tensors,
    folded_order,
    op_devices,
    unit_devices,
)
from situate.solvers.incumbent import Candidate
from situate.solvers.line_cut import cut, live_bytes
from situate.solvers.search import Search

CUT_ROUNDS = 12
"""Largest number of cuts, each adjusted by the peaks of the one before."""

REPAIR_SHARE = 0.1
"""Largest share of the remaining budget for moving units at a cut."""

CPU_BUSY_SHARE = 0.5
"""A CPU that works for more than this share of the step is a bottleneck."""


def offer_memory_fits(search: Search) -> None:
    """Offer segments of the folded line, repaired until they fit, if nothing fits yet or the
    incumbent keeps a CPU busy.

    Accelerators come in both orders unless they are alike. Unlike proportional cuts, which count
    persistent bytes, these segments account for activations.
    """
    problem = search.problem
    devices = accelerators(problem)
    if len(devices) < 2 or problem.rules.memory == "persistent" or not _worthwhile(search, devices):
        return
    line = folded_order(problem)
    for turn in (devices, devices[::-1])[: 1 if _alike(problem, devices) else 2]:
        nearest = _fit(search, line, turn)
        if not nearest.feasible:
            repair(search, nearest)
        if search.finished():
            return


def _worthwhile(search: Search, devices: list[int]) -> bool:
    problem, incumbent = search.problem, search.incumbent
    if problem.persistent.sum() > sum(problem.capacity[devices].tolist()):  # beyond 64 bits
        return False
    # (CPUs,) busy seconds: a busy CPU delays the accelerators.
    others = np.delete(incumbent.schedule.busy(problem), devices)
    return not incumbent.feasible or bool(
        (others > CPU_BUSY_SHARE * incumbent.schedule.makespan).any()
    )


def _alike(problem: Problem, devices: list[int]) -> bool:
    """True if the devices have equal speed and memory."""
    seconds, capacity = problem.seconds[:, devices], problem.capacity[devices]
    return bool((seconds == seconds[:, :1]).all() and (capacity == capacity[0]).all())


def _fit(search: Search, line: NDArray[np.int32], turn: list[int]) -> Candidate:
    """Offer cuts until one fits, and return the best one; each segment shrinks by its device's peak
    relative to its capacity."""
    problem = search.problem
    weight, order = live_bytes(problem), np.array(problem.graph.order, np.int32)
    capacity = problem.capacity[turn].astype(np.float64)
    share, candidates = capacity, list[Candidate]()
    while not candidates or (
        len(candidates) < CUT_ROUNDS and not (candidates[-1].feasible or search.finished())
    ):
        candidates.append(search.offer(cut(problem, turn, line, weight, share), order))
        # (devices,) at least a tenth, so that an almost empty device does not take everything.
        share = share / np.maximum(candidates[-1].schedule.peak[turn] / capacity, 0.1)
    return min(candidates, key=lambda candidate: candidate.score)


def repair(search: Search, candidate: Candidate) -> None:
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
