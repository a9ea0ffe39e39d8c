"""Placements at random, of three grains; every one keeps colocated ops together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode

DEPTH = 3
"""Parts of a module's path that tell the modules apart which `by_module` moves as one."""


def by_unit(problem: Problem, draw: np.random.Generator) -> Schedule:
    """Every colocation group, and every op in none, on any device."""
    return _scheduled(problem, draw.integers(problem.d, size=problem.units))


def by_module(problem: Problem, draw: np.random.Generator) -> Schedule:
    """Every module, forward, backward and update, on any device."""
    module = _modules(problem, DEPTH)
    return _scheduled(problem, draw.integers(problem.d, size=module.max() + 1)[module])


def contiguous(problem: Problem, draw: np.random.Generator) -> Schedule:
    """The smallest modules in the order in which they run, cut at random within half of an even
    share from where it would be even."""
    module = _modules(problem, None)
    seconds = np.zeros(module.max() + 1)
    np.add.at(seconds, module[problem.unit], problem.seconds[:, 0])
    even = np.arange(1, problem.d) / problem.d
    cuts = even + draw.uniform(-0.5, 0.5, len(even)) / problem.d
    midpoints = np.cumsum(seconds) - seconds / 2
    return _scheduled(problem, np.searchsorted(cuts * seconds.sum(), midpoints)[module])


def _modules(problem: Problem, depth: int | None) -> NDArray[np.int64]:
    """(units,) number of each unit's module, in the order in which the modules first run."""
    names = [".".join(op.module.split(".")[:depth]) for op in problem.graph.ops]
    of_unit = np.zeros(problem.units, np.int64)
    index: dict[str, int] = {}
    for op in problem.graph.order:
        of_unit[problem.unit[op]] = index.setdefault(names[op], len(index))
    return of_unit


def _scheduled(problem: Problem, of_unit: NDArray[np.integer]) -> Schedule:
    placement = of_unit.astype(np.int32)[problem.unit]
    return decode(problem, placement, problem.depth_first, "eager")
