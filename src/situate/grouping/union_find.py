"""Disjoint sets of units, merged two by two (union-find)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class UnionFind:
    """`units` sets of one unit each, to begin with; a set is named after its lowest unit."""

    def __init__(self, units: int) -> None:
        self._parent = list(range(units))

    def root(self, unit: int) -> int:
        """The lowest unit of the set that a unit is in."""
        parent = self._parent
        while parent[unit] != unit:
            # Path halving: later look-ups pass over every other unit of this path.
            parent[unit] = parent[parent[unit]]
            unit = parent[unit]
        return unit

    def merge(self, a: int, b: int) -> int:
        """Make the sets of two units one; returns its lowest unit."""
        low, high = sorted((self.root(a), self.root(b)))
        self._parent[high] = low
        return low

    def roots(self) -> NDArray[np.int64]:
        """(units,) the lowest unit of every unit's set."""
        return np.array([self.root(unit) for unit in range(len(self._parent))], np.int64)
