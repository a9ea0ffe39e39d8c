"""Divisions of ops among the devices of a team: into equal parts, or into parts by speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from situate.data.arrays import Floats
from situate.data.cuts import MANY, MOST, Cut
from situate.data.problem import Problem
from situate.data.topology import accelerators

MAX_TOTAL = 64
"""Largest sum of unequal shares."""

SHARE_TOLERANCE = 1.02
"""Largest part of shares that are used, as a multiple of the smallest largest part; shares with the
smallest sum are preferred."""

MIN_SPREAD = 1.05
"""Ratio of the speeds of two devices from which parts are unequal."""

MIN_WEIGHT = 1e-3
"""Least share of a device without room for more."""

FILLED = 0.9
"""Share of a device's memory that parameters and their state may fill."""


@dataclass(frozen=True)
class Division:
    """The share of each device of a team in the work of an op.

    Attributes:
        weights: of the devices; their sum is one.
    """

    weights: tuple[float, ...]

    @classmethod
    def equal(cls, count: int) -> Division:
        """As many equal parts."""
        return cls((1 / count,) * count)

    @property
    def count(self) -> int:
        """The number of parts."""
        return len(self.weights)

    @cached_property
    def is_equal(self) -> bool:
        """True if all parts are equal."""
        return len(set(self.weights)) == 1

    def cut(self, kind: str, units: Sequence[int]) -> Cut | None:
        """The cut of a kind whose parts come closest to the weights; None if there is none.

        Equal parts need one class that has so many; unequal shares must suit all classes.

        Args:
            units: of the classes of that kind.
        """
        if self.is_equal:
            cut = Cut(kind, (1,) * self.count)
            return cut if any(cut.bounds(size) for size in units) else None
        totals = range(self.count, min(MAX_TOTAL, min(units)) + 1)
        # Totals that divide the units, or that many units are rounded to at little cost.
        suitable = (t for t in totals if all(not size % t or size >= MANY * t for size in units))
        shares = [self._shares_of(total) for total in suitable]
        if not shares:
            return None
        largest = min(map(self._largest, shares))
        best = next(row for row in shares if self._largest(row) <= SHARE_TOLERANCE * largest)
        return Cut(kind, best)

    def _shares_of(self, total: int) -> tuple[int, ...]:
        """Positive shares of this sum, whose longest part is as short as it can be."""
        shares = [1] * self.count
        for _ in range(total - self.count):
            # Each further unit goes to the device that would end first with it.
            ends = [(share + 1) / w for share, w in zip(shares, self.weights, strict=True)]
            shares[ends.index(min(ends))] += 1
        return tuple(shares)

    def _largest(self, shares: Sequence[int]) -> float:
        """The time of the longest part, as a multiple of that by the exact weights."""
        return max(s / w for s, w in zip(shares, self.weights, strict=True)) / sum(shares)


def divisions(problem: Problem) -> list[Division]:
    """Equal parts for all accelerators and for teams of 2, 4, 8, ... of them; for teams of unequal
    devices also parts by speed, and by speed within the memory of the devices."""
    result = []
    for count in _counts(len(accelerators(problem))):
        speed = _speeds(problem, count)
        result.append(Division.equal(count))
        if speed.max() > MIN_SPREAD * speed.min():
            result += [_division_of(speed), _division_of(_within_memory(problem, speed))]
    return [*dict.fromkeys(result)]


def _counts(devices: int) -> list[int]:
    counts = [count for count in (2**k for k in range(1, 10)) if count < devices]
    teams = [count for count in counts if not devices % count]
    return [count for count in (*teams, min(devices, MOST)) if count > 1]


def _speeds(problem: Problem, count: int) -> Floats:
    """(count,) shares of the first accelerators in the work that ends on all at once."""
    seconds = problem.seconds[:, accelerators(problem)[:count]]
    total = seconds[np.isfinite(seconds).all(axis=1)].sum(axis=0)
    speed = 1 / np.maximum(total, 1e-300)
    return np.asarray(speed / speed.sum())


def _within_memory(problem: Problem, share: Floats) -> Floats:
    """The shares (count,), those that exceed the memory of a device dealt out among the others.

    Unchanged if the parameters fit as they are, or in no shares.
    """
    capacity = problem.capacity[accelerators(problem)[: len(share)]]
    room = FILLED * capacity / max(1, int(problem.persistent.sum()))
    if room.sum() < 1:
        return share
    own = share
    # Dealing out may fill further devices; each round but the last fills at least one.
    for _ in share:
        is_full = own >= room
        if not (own > room).any() or is_full.all():
            break
        rest = 1 - room[is_full].sum()
        own = np.where(is_full, room, share * rest / share[~is_full].sum())
    return own


def _division_of(share: Floats) -> Division:
    return Division(tuple(np.maximum(share, MIN_WEIGHT).round(4).tolist()))
