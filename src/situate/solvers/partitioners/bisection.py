"""Partitions by recursive bisection after Kernighan and Lin, with a share of the seconds for each
device."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Bools, Floats, Ints
from situate.solvers.partitioners.mapping import Mapping

FREE, FIRST, SECOND, OUTSIDE = -1, 0, 1, 2
"""Sides of units for the core's bisection."""


class Bisection:
    """Recursive bisection of the units of a mapping; units with one allowed side begin there.

    Args:
        mapping: the units and devices.
    """

    def __init__(self, mapping: Mapping) -> None:
        problem = mapping.problem
        self._graph = mapping.graph.in_core(problem, seconds=mapping.load)
        self._speed: Floats = mapping.speed
        # (units, k) True if a unit may run on the device of a part.
        self._may: Bools = problem.allowed[:, mapping.devices]

    def parts(self, generator: Generator) -> Ints:
        """(units,) the part of each unit, below k, from a random start; the load of a part is
        proportional to the speed of its device."""
        part = np.zeros(len(self._may), np.int64)
        self._split(part, 0, len(self._speed), generator)
        return part

    def _split(self, part: Ints, first: int, end: int, generator: Generator) -> None:
        """Distribute the units of part `first` over the parts from there to `end`."""
        if end - first < 2:
            return
        middle = first + (end - first) // 2
        share = self._speed[first:middle].sum() / self._speed[first:end].sum()
        side = _core.partition.bisect(
            self._graph,
            side=self._sides(part == first, first, middle, end),
            order=generator.permutation(len(part)),
            share=float(share),
        )
        # The first side keeps its number; the second one begins at `middle`.
        part[side == SECOND] = middle
        self._split(part, first, middle, generator)
        self._split(part, middle, end, generator)

    def _sides(self, inside: Bools, first: int, middle: int, end: int) -> NDArray[np.int8]:
        """(units,) the initial side of each unit; free if it may run on devices of both sides, or
        of neither."""
        here = self._may[:, first:middle].any(axis=1)
        there = self._may[:, middle:end].any(axis=1)
        side = np.where(here == there, FREE, np.where(here, FIRST, SECOND))
        return np.where(inside, side, OUTSIDE).astype(np.int8)
