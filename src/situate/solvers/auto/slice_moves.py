"""Moves of parts of a slice: if every device runs slices of its own, an idle device takes over work
from a late one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Order
from situate.data.topology import op_devices, unit_devices
from situate.solvers.auto.blocks import slice_modules
from situate.solvers.auto.climb import best_order
from situate.solvers.search import Search

SHARE = 0.8
"""Largest share of the remaining budget for these moves."""

TARGETS = 2
"""Number of devices to try for a block, the least busy first."""

LEAST_GAIN = 1e-3
"""Least relative gain of a pass over all blocks for another pass."""


def move_slices(search: Search) -> None:
    """Move the modules of one slice, whole or by phase, each to a less busy device, and keep
    improvements; repeat as long as a pass helps."""
    if search.problem.graph.slices is None or search.finished():
        return
    descent = _Descent(search, best_order(search, search.incumbent))
    end = (1 - SHARE) * search.budget.remaining()
    before = np.inf
    while descent.score[1] < (1 - LEAST_GAIN) * before and search.budget.remaining() > end:
        before = descent.score[1]
        descent.run(end)
    search.offer(op_devices(search.problem, descent.of_unit), descent.order)


class _Descent:
    """Descent of a placement, block by block.

    Attributes:
        order: (n,) of the ops, for all placements.
        of_unit: (units,) the current placement.
        score: its score under an eager scheduler.
    """

    def __init__(self, search: Search, order: Order) -> None:
        self._search, self.order = search, order
        self.of_unit = unit_devices(search.problem, search.incumbent.placement)
        self.score = search.estimate(search.incumbent.placement, order, "eager")
        problem = search.problem
        self._seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)
        self._blocks = [np.array(block) for block in slice_modules(problem)]
        self._random = np.random.default_rng(search.seed)

    def run(self, end: float) -> None:
        """Make one pass over all blocks; stop when only `end` of the budget is left."""
        for number in self._random.permutation(len(self._blocks)):
            block = self._blocks[number]
            for device in self._targets(block):
                if self._search.finished() or self._search.budget.remaining() <= end:
                    return
                if self._try(block, device):
                    break

    def _targets(self, block: NDArray[np.int64]) -> Iterator[int]:
        """The least busy devices that may run a block and would still work less than a step
        takes."""
        problem, at = self._search.problem, np.arange(self._search.problem.units)
        busy = np.bincount(self.of_unit, self._seconds[at, self.of_unit], problem.d)
        after = busy + self._seconds[block].sum(axis=0)
        here = self.of_unit[block[0]]
        for device in np.argsort(busy, kind="stable")[:TARGETS].tolist():
            ends = after[device] < self.score[1]
            if device != here and ends and problem.allowed[block, device].all():
                yield device

    def _try(self, block: NDArray[np.int64], device: int) -> bool:
        changed = self.of_unit.copy()
        changed[block] = device
        placement = op_devices(self._search.problem, changed)
        score = self._search.estimate(placement, self.order, "eager")
        if score >= self.score:
            return False
        self.of_unit, self.score = changed, score
        return True
