"""Blocks of units that move together, and moves of the blocks of one slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.topology import op_devices, unit_devices
from situate.grouping import heavy_edge
from situate.grouping.units import members
from situate.solvers.auto.improve.climb import best_order
from situate.solvers.search import Search

GROUPS = (48, 12)
"""Numbers of groups by exchanged bytes, fine and coarse."""

Block = tuple[int, ...]
"""Units, each once."""


SLICE_SHARE = 0.8
"""Largest share of the remaining budget for these moves."""

TARGETS = 2
"""Number of devices to try for a block, the least busy first."""

LEAST_GAIN = 1e-3
"""Least relative gain of a pass over all blocks for another pass."""


class Blocks(NamedTuple):
    """Modules and groups in compressed rows.

    Attributes:
        start: (b + 1,) first entry of every block in `units`.
        units: units of all blocks.
        turns: numbers of blocks, repeated so that a uniform draw is a group about as often as a
            module.
    """

    start: NDArray[np.int32]
    units: NDArray[np.int32]
    turns: NDArray[np.int32]


def blocks(problem: Problem) -> Blocks:
    """All blocks of a problem."""
    of_modules, of_groups = modules(problem), groups(problem)
    repeats = max(1, round(len(of_modules) / max(1, len(of_groups))))
    all_blocks = [*of_modules, *of_groups]
    # There are fewer groups than modules, so groups are repeated in `turns`.
    grouped = list(range(len(of_modules), len(all_blocks)))
    turns = [*range(len(of_modules)), *grouped * repeats]
    # Compressed rows: block b holds units[start[b] : start[b + 1]].
    start, units = (
        np.cumsum([0, *map(len, all_blocks)]),
        [unit for block in all_blocks for unit in block],
    )
    return Blocks(*(np.array(values, np.int32) for values in (start, units, turns)))


def modules(problem: Problem) -> list[Block]:
    """Units of every module, and of each of its phases, at every depth of the module paths."""
    return _modules(problem, apart=False)


def _modules(problem: Problem, apart: bool) -> list[Block]:
    """The modules; with `apart` those of each slice, without units that run once a step."""
    paths: dict[tuple[int, str], int] = {}
    members: dict[tuple[int, str, int | None], dict[int, None]] = {}
    for op, unit in zip(problem.graph.ops, problem.unit.tolist(), strict=True):
        if apart and op.slice is None:
            continue
        path, part_of = 0, op.slice if apart else None
        for part in op.module.split(".") if op.module else ():
            # A path is keyed by its parent's number, because whole paths grow with depth.
            path = paths.setdefault((path, part), len(paths) + 1)
            # Once for the whole module and once for the op's phase in it, if it has one.
            for phase in dict.fromkeys(("", op.phase)):
                members.setdefault((path, phase, part_of), {})[unit] = None
    return _proper(problem, map(tuple, members.values()))


def _slice_modules(problem: Problem) -> list[Block]:
    """Units of every module in one slice, and of each of its phases there, at every depth."""
    return _modules(problem, apart=True)


def groups(problem: Problem) -> list[Block]:
    """Units of the groups by contraction of heavy edges. In an unrolled network they are segments
    of a few steps, unlike modules."""
    units_of_groups: list[Block] = []
    for labels in heavy_edge.partitions(problem, GROUPS):
        units_of_groups += _proper(problem, (tuple(units.tolist()) for units in members(labels)))
    return units_of_groups


def _proper(problem: Problem, candidates: Iterable[Block]) -> list[Block]:
    """The distinct blocks, without blocks of a single unit or of all units."""
    return [block for block in dict.fromkeys(candidates) if 1 < len(block) < problem.units]


def move_slices(search: Search) -> None:
    """Move the modules of one slice, whole or by phase, each to a less busy device, and keep
    improvements; repeat as long as a pass helps."""
    if search.problem.graph.slices is None or search.finished():
        return
    descent = _Descent(search, best_order(search, search.incumbent))
    end = (1 - SLICE_SHARE) * search.budget.remaining()
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
        self._blocks = [np.array(block) for block in _slice_modules(problem)]
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
        # A block may be spread over devices; its first unit stands for all.
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
