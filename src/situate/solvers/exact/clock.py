"""Times and bytes as the whole numbers of CP-SAT, rounded so that every bound stays valid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from situate.bounds.rounding import EPSILON
from situate.data.arrays import Floats, Ints
from situate.data.problem import Problem

LARGEST_SUM = 2**28
"""The largest sum of all durations, and of all bytes. CP-SAT 9.15 proves wrong optima where the
coefficients of literals in one constraint add up to more than 2^31 (google/or-tools, 5293), and its
presolve may write variables as literals too: an instant is at most as large, and a constraint has
three. The product of both sums, too, is below the 2^63 beyond which it refuses a model."""

SMALLEST_EXPONENT = -1074
"""The exponent of the least power of two that is a float."""

MAX_EXACT_INTEGER = 2**53
"""Whole numbers up to this one are floats, and their sums exact."""


class Clock(Protocol):
    """Durations and instants, in whole numbers."""

    @property
    def horizon(self) -> int:
        """Latest end of a schedule of interest."""
        ...

    def ticks(self, seconds: Floats) -> Ints:
        """Durations of any shape, rounded so that none exceeds its value in any schedule."""
        ...

    def delay(self, seconds: float) -> int:
        """Lower bound on the delay of so many seconds between the end of an op and the arrival of
        its signal."""
        ...

    def at(self, instants: Floats) -> Ints:
        """Instants of the starts (k,) of all ops and transfers of a schedule."""
        ...


@dataclass(frozen=True)
class Ticking:
    """Time in ticks of `unit` seconds, rounded down.

    First every duration loses `slack` seconds, the largest rounding error of an end in a schedule
    that ends by the horizon.
    """

    unit: float
    slack: float
    horizon: int

    @classmethod
    def until(cls, end: float, durations: Floats) -> Ticking:
        """The clock of schedules with these durations that end by `end`.

        It is exact if all durations are multiples of a long enough tick and floats represent their
        sums exactly.
        """
        durations = durations[(durations > 0) & np.isfinite(durations)]
        total = max(end, float(np.minimum(durations, end).sum()))
        if not total:
            return cls(1.0, 0.0, 0)
        exact = _common_measure(end, durations[durations <= end])
        if exact and total / exact <= LARGEST_SUM:
            return cls(exact, 0.0, int(end / exact))
        # A power of two, because division by it is exact; at least the smallest float.
        # frexp writes 2^28 as 0.5 * 2^29. The sum of all durations is at most 2^28 ticks.
        exponent = math.ceil(math.log2(total)) - math.frexp(LARGEST_SUM)[1] + 1
        unit = 2.0 ** max(exponent, SMALLEST_EXPONENT)
        # Half an EPSILON of `end` for the schedule's sum, one for the subtraction below.
        return cls(unit, 2 * EPSILON * end, int(end / unit))

    def ticks(self, seconds: Floats) -> Ints:
        shorter = np.maximum(0.0, seconds - self.slack) / self.unit
        # Durations beyond the horizon all count as one tick more than the horizon.
        return np.minimum(np.floor(shorter), self.horizon + 1.0).astype(np.int64)

    def delay(self, seconds: float) -> int:
        return int(self.ticks(np.array(seconds)))

    def at(self, instants: Floats) -> Ints:
        return np.floor(instants / self.unit).astype(np.int64)


def _common_measure(end: float, durations: Floats) -> float:
    """The largest exact common divisor of all durations; zero if floats round their sums below
    `end`."""
    parts = [duration.as_integer_ratio() for duration in np.unique(durations).tolist()]
    # All denominators are powers of two, so the largest is a multiple of the others.
    below = max((denominator for _, denominator in parts), default=1)
    if not parts or Fraction(end) * below > MAX_EXACT_INTEGER:
        return 0.0
    common = math.gcd(*(numerator * (below // denominator) for numerator, denominator in parts))
    return common / below


@dataclass(frozen=True)
class Turns:
    """Time as turns: the number of earlier instants at which an op or transfer starts.

    Every op or transfer that takes time takes one turn, because its successors start later.

    Attributes:
        shortest: seconds; shorter ops and transfers may end at the instant at which they start.
        horizon: see `Clock`.
    """

    shortest: float
    horizon: int

    def ticks(self, seconds: Floats) -> Ints:
        return (seconds > self.shortest).astype(np.int64)

    def delay(self, seconds: float) -> int:
        return 0  # no other item has to start during the delay

    def at(self, instants: Floats) -> Ints:
        return np.searchsorted(np.unique(instants), instants)


@dataclass(frozen=True)
class Bytes:
    """Bytes in multiples of `unit`, rounded down so that every feasible plan stays feasible.

    Attributes:
        unit: in bytes.
        total: upper bound on the sum of all sizes, in units.
    """

    unit: int
    total: int

    @classmethod
    def of(cls, problem: Problem) -> Bytes:
        """The unit of a problem; exact unless the sum of all sizes would exceed `LARGEST_SUM`."""
        sizes = [problem.size, problem.workspace, problem.unit_persistent]
        # A tensor may be on every device.
        total = sum(int(array.sum()) for array in sizes) + int(problem.size.sum()) * problem.d
        common = int(np.gcd.reduce(np.concatenate(sizes)))
        unit = max(1, common, -(-total // LARGEST_SUM))
        return cls(unit, total // unit)

    def whole(self, size: int) -> int:
        """A number of bytes in units, rounded down."""
        return size // self.unit
