"""Sets of devices: those that units may run on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Bools, Ints
from situate.data.problem import Problem


@dataclass(frozen=True)
class DeviceSets:
    """The distinct sets of devices that the units of a problem may run on.

    Attributes:
        sets: (k, d), those of most units first.
        of_unit: (units,) index of the set of each unit.
    """

    sets: Bools
    of_unit: Ints

    @classmethod
    def of(cls, problem: Problem) -> DeviceSets:
        """Those of a problem's units."""
        # Rows as bytes in a dictionary: a sort of all rows takes many times as long.
        seen: dict[bytes, int] = {}
        rows = np.ascontiguousarray(problem.allowed)
        first = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows])
        sets = np.frombuffer(b"".join(seen), np.bool_).reshape(len(seen), problem.d)
        falling = np.argsort(-np.bincount(first), kind="stable")
        place = np.argsort(falling)
        return cls(sets[falling], place[first])
