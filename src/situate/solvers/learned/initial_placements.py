"""Placements that a learner measures first, before it knows any."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.grouping import Groups
from situate.solvers.learned.learner import Learning

Devices = NDArray[np.int32]
"""(g,) of groups."""


class InitialPlacements:
    """The plan to begin with, if there is one, then everything on one device, each device once.

    Args:
        groups: what is placed as one.
        start: makes the devices of groups to begin with, or is None.
    """

    def __init__(self, groups: Groups, start: Callable[[], Devices] | None = None) -> None:
        self._groups = groups
        self._start = start

    @property
    def has_plan(self) -> bool:
        """True if a plan is the first of them."""
        return self._start is not None

    def __len__(self) -> int:
        return int(self.has_plan) + len(self._groups.allowed[0])

    def write_into(self, draws: NDArray[np.int32]) -> None:
        """Put them into the first of some draws (k, g); where a group may not go it stays where it
        was drawn."""
        placements = [] if self._start is None else [self._start()]
        g, d = self._groups.allowed.shape
        placements += [np.full(g, device, np.int32) for device in range(d)]
        # A batch may be smaller than the list of placements: those that come first are kept.
        for devices, row in zip(placements, draws, strict=False):
            # (g,) whether each group may run on its wanted device; the others keep what was drawn.
            allowed = self._groups.allowed[np.arange(g), devices]
            row[allowed] = devices[allowed]


def initial_placements(problem: Problem, learning: Learning, groups: Groups) -> InitialPlacements:
    """Those of a learner that can begin with `Learning.start`; the plan is made when it is put."""
    if learning.start is None:
        return InitialPlacements(groups)
    start = learning.start
    return InitialPlacements(groups, lambda: _coarsened(start(), problem, groups))


def _coarsened(placement: NDArray[np.int32], problem: Problem, groups: Groups) -> Devices:
    """Devices of groups, by where most of their seconds are."""
    return groups.majority(placement, problem.seconds[np.arange(problem.n), placement])
