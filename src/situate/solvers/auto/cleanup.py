"""Cleanup: parameters and inputs that a plan sends for no gain go to the device that reads them."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Ints, Placement
from situate.data.problem import Problem
from situate.data.topology import edge_producers, op_devices, unit_devices
from situate.solvers.search import Search

MOST_DECODINGS = 500
"""Plans that the cleanup may decode at most."""

OFFERS_TO_LOOK = 2
"""Offers that take longer than looking for stray units."""

Moves = Ints
"""Rows of (unit, device)."""


def clean_up(search: Search, keep: int = 0) -> None:
    """Move parameters and inputs to the one device that reads them where no plan gets worse by it.

    A transfer over an idle channel is free in the model, and a nuisance in life.

    Args:
        search: whose best plan is cleaned up.
        keep: offers that must have time afterwards.
    """
    if (
        search.best is None
        or "calls" in search.decoders
        or not search.affords(keep + OFFERS_TO_LOOK)
    ):
        return
    todo = [stray(search.problem, search.best.placement)]
    most = search.evaluations + MOST_DECODINGS
    if search.evaluation_limit is not None:
        most = min(most, search.evaluation_limit)
    while todo and search.affords(keep + 1) and search.evaluations < most:
        moves = todo.pop()
        half = len(moves) // 2
        if len(moves) and not _accepts(search, moves) and half:
            # Halves of what was refused: a few bad moves do not keep the good ones from being made.
            todo += [moves[:half], moves[half:]]


def stray(problem: Problem, placement: Placement) -> Moves:
    """Units whose source ops are read by other units on one other device only, and that device."""
    readers = edge_producers(problem)
    # (n,) ops that read nothing.
    source = np.ones(problem.n, bool)
    source[problem.consumers] = False
    units = problem.unit[readers]
    reads = source[readers] & (units != problem.unit[problem.consumers])
    devices = placement[problem.consumers[reads]]
    # (units,) the least and the greatest device that reads a unit's sources: equal where all of
    # its readers are on one device.
    lowest = np.full(problem.units, problem.d)
    highest = np.full(problem.units, -1)
    np.minimum.at(lowest, units[reads], devices)
    np.maximum.at(highest, units[reads], devices)
    home = unit_devices(problem, placement)
    units_to_move = np.flatnonzero((lowest == highest) & (lowest != home))
    units_to_move = units_to_move[problem.allowed[units_to_move, lowest[units_to_move]]]
    return np.column_stack([units_to_move, lowest[units_to_move]])


def _accepts(search: Search, moves: Moves) -> bool:
    """Make the moves if the best plan is as good with all of them, and return whether it is."""
    best = search.best
    assert best is not None, "only a plan can be cleaned up"
    devices = unit_devices(search.problem, best.placement)
    devices[moves[:, 0]] = moves[:, 1]
    placement = op_devices(search.problem, devices)
    offered = search.offer(placement, best.order, [best.decoder], ties=True)
    return search.best is offered
