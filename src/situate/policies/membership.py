"""Devices that a sampled group may go to, and the placement of its members."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.policies.op_features import Index


class Membership:
    """Placements of groups whose members were drawn, such that every constraint holds.

    Units join groups, so the ops of a colocation group stay together. A unit that one device alone
    can run is in no group and always there; the others are the u *free* units. A group may go to
    the devices that the most of its members can run on: all of its members' common devices where
    there are any. A member that cannot follow goes to the first device that it can run on.

    Args:
        problem: of n ops on d devices.
        count: number g of groups.

    Attributes:
        free: (u,) the free units.
    """

    def __init__(self, problem: Problem, count: int) -> None:
        self._unit = problem.unit
        self._allowed = problem.allowed
        self._count = count
        # (units,) argmax takes the first of equals.
        self._first: Index = problem.allowed.argmax(axis=1)
        self.free: Index = np.flatnonzero(problem.allowed.sum(axis=1) > 1)
        # Pairs (free unit, device that it cannot run on), few in most problems; counting them is
        # cheaper than reducing an array (u, d) for every sample.
        self._misfit, self._missing = np.nonzero(~problem.allowed[self.free])

    def of_ops(self, groups: Index) -> Index:
        """(n,) the group of each op from those (u,) of the free units; g for an op in none."""
        return self._of_units(groups)[self._unit]

    def _of_units(self, groups: Index) -> Index:
        units = np.full(len(self._allowed), self._count, np.int64)
        units[self.free] = groups
        return units

    def allowed(self, groups: Index) -> NDArray[np.bool_]:
        """(g, d) devices that groups (u,) may go to; an empty one to the first alone, so that
        nothing is drawn, and nothing learnt, for it."""
        g, d = self._count, self._allowed.shape[1]
        # (group, device) as one number; (g, d) members that could not run there.
        cell = groups[self._misfit] * d + self._missing
        misfits = np.bincount(cell, minlength=g * d).reshape(g, d)
        result = misfits == misfits.min(axis=1, keepdims=True)
        # Rows of groups without members become (True, False, ...): one allowed device has
        # probability 1, so its log-probability and its gradient are 0.
        result[np.bincount(groups, minlength=g) == 0] = np.arange(d) == 0
        return np.asarray(result)

    def place(self, groups: Index, devices: Index) -> NDArray[np.int32]:
        """(n,) the placement when groups (u,) go to devices (g,)."""
        wanted = self._first.copy()
        wanted[self.free] = devices[groups]
        can = self._allowed[np.arange(len(wanted)), wanted]
        return np.where(can, wanted, self._first)[self._unit].astype(np.int32)
