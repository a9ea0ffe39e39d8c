"""Segments of the network, one an accelerator, as long as the bytes live in them allow."""

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
from situate.solvers.line_cut import cut, live_bytes
from situate.solvers.search import Candidate, Search

CUT_ROUNDS = 12
"""Cuts at most, each after the peaks of the one before."""

REPAIR_SHARE = 0.1
"""Share of what is left of the budget that goes to moving units at a cut, at most."""

CPU_BUSY_SHARE = 0.5
"""Share of the step that a CPU works at least where it holds the accelerators up."""


def offer_memory_fits(search: Search) -> None:
    """Offer segments of the folded line, with the accelerators in both orders unless these are
    alike, repaired until they fit; where nothing fits yet, or only a plan that keeps a CPU working.

    Proportional cuts count bytes that ops hold for the whole step, and so say nothing of
    activations.
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
    # (CPUs,) busy seconds: a plan that keeps a CPU working holds the accelerators up.
    others = np.delete(incumbent.schedule.busy(problem), devices)
    return not incumbent.feasible or bool(
        (others > CPU_BUSY_SHARE * incumbent.schedule.makespan).any()
    )


def _alike(problem: Problem, devices: list[int]) -> bool:
    """True where the devices are as fast and as large as one another."""
    seconds, capacity = problem.seconds[:, devices], problem.capacity[devices]
    return bool((seconds == seconds[:, :1]).all() and (capacity == capacity[0]).all())


def _fit(search: Search, line: NDArray[np.int32], turn: list[int]) -> Candidate:
    """Offer cuts until one fits, and return the one that fits best: a segment shrinks by as much
    as its device is fuller than others."""
    problem = search.problem
    weight, order = live_bytes(problem), np.array(problem.graph.order, np.int32)
    capacity = problem.capacity[turn].astype(np.float64)
    share, candidates = capacity, list[Candidate]()
    while not candidates or (
        len(candidates) < CUT_ROUNDS and not (candidates[-1].feasible or search.finished())
    ):
        candidates.append(search.offer(cut(problem, turn, line, weight, share), order))
        # (devices,) at least a tenth, so that a device that is almost empty does not take it all.
        share = share / np.maximum(candidates[-1].schedule.peak[turn] / capacity, 0.1)
    return min(candidates, key=lambda candidate: candidate.score)


def repair(search: Search, candidate: Candidate) -> None:
    """Offer what becomes of a plan when units that exchange tensors with other devices go there,
    those of most bytes first, as long as that fits better."""
    problem, score = search.problem, candidate.score
    of_unit = unit_devices(problem, candidate.placement)
    end, bettered = search.budget_left() * (1 - REPAIR_SHARE), True
    while bettered and score[0]:
        bettered = False
        for unit, device in _across(problem, of_unit):
            if search.budget_left() <= end or not score[0]:
                break
            changed = of_unit.copy()
            changed[unit] = device
            new = search.estimate(op_devices(problem, changed), candidate.order, "eager")
            if new < score:
                of_unit, score, bettered = changed, new, True
    search.offer(op_devices(problem, of_unit), candidate.order)


def _across(problem: Problem, of_unit: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Units that exchange tensors with units on other devices, with these devices."""
    source = problem.unit[edge_producers(problem)]
    reader = problem.unit[problem.consumers]
    apart = np.flatnonzero(of_unit[source] != of_unit[reader])
    # (edges across,) those of the largest tensors first; each gives both of its ends a move to the
    # other's device.
    apart = apart[np.argsort(-problem.size[edge_tensors(problem)[apart]], kind="stable")]
    # (2 * edges across,) alternating: the producer's unit, the reader's unit, ...
    ends = np.column_stack((source[apart], reader[apart])).ravel()
    there = of_unit[np.column_stack((reader[apart], source[apart])).ravel()]
    pairs = dict.fromkeys(zip(ends.tolist(), there.tolist(), strict=True))
    return [(unit, device) for unit, device in pairs if problem.allowed[unit, device]]
