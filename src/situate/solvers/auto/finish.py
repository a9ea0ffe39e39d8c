"""The last phase: free moves of parameters, and one device if several gain too little."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Ints, Placement
from situate.data.problem import Problem
from situate.data.topology import edge_producers, op_devices, unit_devices
from situate.results.expected import expected_seconds
from situate.solvers.search import Search

MOST_DECODINGS = 500
"""Largest number of plans that the cleanup decodes."""

OFFERS_TO_LOOK = 2
"""Finding stray units takes less time than so many offers."""

Moves = Ints
"""Rows of (unit, device)."""


def finish(search: Search) -> None:
    """Clean up the best plan, and keep to one device if several gain too little."""
    clean_up(search, _one_device_plans(search))
    _keep_to_one_device(search)


def clean_up(search: Search, keep: int = 0) -> None:
    """Move parameters and inputs to the one device that reads them if the plan gets no worse.

    A transfer over an idle channel is free in the model but costs something in practice.

    Args:
        search: with the plan to clean up.
        keep: number of offers that must fit in the time afterwards.
    """
    if (
        search.best is None
        or "calls" in search.decoders
        or not search.budget.affords(keep + OFFERS_TO_LOOK)
    ):
        return
    todo = [stray(search.problem, search.best.placement)]
    most = search.budget.evaluations + MOST_DECODINGS
    if search.budget.evaluation_limit is not None:
        most = min(most, search.budget.evaluation_limit)
    while todo and search.budget.affords(keep + 1) and search.budget.evaluations < most:
        moves = todo.pop()
        half = len(moves) // 2
        if len(moves) and not _accepts(search, moves) and half:
            # Rejected moves are tried in halves, so that bad moves do not block good ones.
            todo += [moves[:half], moves[half:]]


def stray(problem: Problem, placement: Placement) -> Moves:
    """Units whose source ops have readers on one other device only, with that device."""
    readers = edge_producers(problem)
    # (n,) True for ops without inputs.
    source = np.ones(problem.n, bool)
    source[problem.consumers] = False
    units = problem.unit[readers]
    reads = source[readers] & (units != problem.unit[problem.consumers])
    devices = placement[problem.consumers[reads]]
    # (units,) the lowest and the highest device that reads a unit's sources; equal if all of its
    # readers are on one device.
    lowest = np.full(problem.units, problem.d)
    highest = np.full(problem.units, -1)
    np.minimum.at(lowest, units[reads], devices)
    np.maximum.at(highest, units[reads], devices)
    home = unit_devices(problem, placement)
    units_to_move = np.flatnonzero((lowest == highest) & (lowest != home))
    units_to_move = units_to_move[problem.allowed[units_to_move, lowest[units_to_move]]]
    return np.column_stack([units_to_move, lowest[units_to_move]])


def _accepts(search: Search, moves: Moves) -> bool:
    """Apply the moves if the best plan is as good with all of them; return True if it is."""
    best = search.best
    assert best is not None, "only a plan can be cleaned up"
    devices = unit_devices(search.problem, best.placement)
    devices[moves[:, 0]] = moves[:, 1]
    placement = op_devices(search.problem, devices)
    # A tie counts: the plan then sends fewer tensors for the same value.
    offered = search.offer(placement, best.order, [best.decoder], ties=True)
    return search.best is offered


def _one_device_plans(search: Search) -> int:
    """Number of plans that `_keep_to_one_device` may evaluate."""
    problem = search.problem
    # Only measured costs contain the contention between devices.
    if problem.costs is None or problem.objective != "time":
        return 0
    return int(problem.allowed.all(axis=0).sum())


def _keep_to_one_device(search: Search) -> None:
    """Take the best plan on one device if a plan on several is faster by no more than the expected
    contention between devices."""
    problem, best = search.problem, search.best
    if not _one_device_plans(search) or best is None or not best.feasible:
        return
    if len(np.unique(best.placement)) == 1:
        return
    margin = expected_seconds(problem, best.schedule) - best.schedule.makespan
    order = np.array(problem.graph.program_order, np.int32)
    devices = np.flatnonzero(problem.allowed.all(axis=0)).tolist()
    search.prefer([np.full(problem.n, device, np.int32) for device in devices], order, margin)
