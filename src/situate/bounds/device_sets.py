"""Allowed devices of units, as sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.bounds.alike import equal_rows
from situate.data.arrays import Bools, Ints
from situate.data.problem import Problem


@dataclass(frozen=True)
class DeviceSets:
    """The distinct sets of allowed devices of a problem's units.

    Attributes:
        sets: (k, d), the sets of most units first.
        of_unit: (units,) index of the set of each unit.
    """

    sets: Bools
    of_unit: Ints

    @classmethod
    def of(cls, problem: Problem) -> DeviceSets:
        """The sets of a problem's units."""
        first, of_row = equal_rows(problem.allowed)
        falling = np.argsort(-np.bincount(of_row), kind="stable")
        place = np.argsort(falling)
        return cls(problem.allowed[first[falling]], place[of_row])
