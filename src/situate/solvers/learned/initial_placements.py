"""Placements that a learner measures first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.grouping import Groups
from situate.solvers.learned.learner import Learning

Devices = NDArray[np.int32]
"""(g,) device of each group."""


class InitialPlacements:
    """The start plan, if there is one, then everything on each single device in turn.

    Args:
        groups: the groups to place.
        start: returns the devices of groups in the start plan; None without one.
    """

    def __init__(self, groups: Groups, start: Callable[[], Devices] | None = None) -> None:
        self._groups = groups
        self._start = start

    @property
    def has_plan(self) -> bool:
        """True if a start plan comes first."""
        return self._start is not None

    def __len__(self) -> int:
        return int(self.has_plan) + len(self._groups.allowed[0])

    def write_into(self, draws: NDArray[np.int32]) -> None:
        """Overwrite the first of some draws (k, g) with these placements.

        A group that may not run on its device keeps the drawn one.
        """
        placements = [] if self._start is None else [self._start()]
        g, d = self._groups.allowed.shape
        placements += [np.full(g, device, np.int32) for device in range(d)]
        # A batch may be smaller than the list of placements: the first ones take precedence.
        for devices, row in zip(placements, draws, strict=False):
            # (g,) True where a group may run on its device; the others keep the drawn one.
            allowed = self._groups.allowed[np.arange(g), devices]
            row[allowed] = devices[allowed]


def initial_placements(problem: Problem, learning: Learning, groups: Groups) -> InitialPlacements:
    """The initial placements of a learner; `Learning.start` makes its plan when it is needed."""
    if learning.start is None:
        return InitialPlacements(groups)
    start = learning.start
    return InitialPlacements(groups, lambda: _coarsened(start(), problem, groups))


def _coarsened(placement: NDArray[np.int32], problem: Problem, groups: Groups) -> Devices:
    """(g,) the device on which most of a group's seconds run in a placement (n,)."""
    return groups.majority(placement, problem.seconds[np.arange(problem.n), placement])
