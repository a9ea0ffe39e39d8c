"""Blocks of units that annealing may move together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.grouping import heavy_edge
from situate.grouping.units import members

GROUPS = (48, 12)
"""Numbers of groups by exchanged bytes, fine and coarse."""

Block = tuple[int, ...]
"""Units, each once."""


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
            for phase in dict.fromkeys(("", op.phase)):
                members.setdefault((path, phase, part_of), {})[unit] = None
    return _proper(problem, map(tuple, members.values()))


def slice_modules(problem: Problem) -> list[Block]:
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
