"""Ops that share a device: colocation groups, and ops that a step is too short to part.

A step parts two ops only if the transfer between them fits on their path.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.bounds.paths import Paths
from situate.data.arrays import Floats, Ints
from situate.data.core_problem import core_problem
from situate.data.problem import Problem
from situate.data.topology import edge_producers


# Colocation groups: the ops of one run on one device, one after the other.
def least_group(problem: Problem, paths: Paths) -> float:
    """Lower bound on the seconds of a step with a unit alone on its device.

    The unit occupies the device from the earliest start to the latest end of its ops.
    """
    first, last = np.full((2, problem.units), np.inf)
    np.minimum.at(first, problem.unit, paths.head)
    np.minimum.at(last, problem.unit, paths.tail)
    return float((first + seconds_of_units(problem).min(axis=1) + last).max())


def seconds_of_units(problem: Problem) -> Floats:
    """(units, d) seconds of all ops of a unit; infinite on forbidden devices."""
    return np.where(problem.allowed, problem.unit_seconds, np.inf)


# Ops that a step is too short to part: the transfer between them would not fit on their path.
EDGES, PAIRS = 10_000, 4_000_000
"""Most edges of a graph that is looked at, in a tenth of a second, and most pairs of devices of all
edges."""


def least_together(problem: Problem, paths: Paths) -> float:
    """Lower bound on the seconds of a step by ops that must share a device, because a transfer
    between them would make their path longer than the step."""
    if not can_part(problem):
        return 0.0
    through, ends = parted(problem, paths)
    falling = np.argsort(-through, kind="stable")
    units = ends[falling]
    # The step is no shorter than `lengths[i]`, or parts none of the first i pairs.
    lengths = np.append(through[falling], 0.0)

    def crossed(pairs: int) -> float:
        return busiest(problem.confined(united(problem, units[:pairs]), problem.allowed))

    low, high = 0, len(units)
    while low < high:
        middle = (low + high) // 2
        if crossed(middle) >= lengths[middle]:
            high = middle
        else:
            low = middle + 1
    # The first rises with the number of pairs, the second falls: the larger of both is smallest
    # where they cross.
    least = max(crossed(low), float(lengths[low]))
    return min(least, float(lengths[low - 1])) if low else least


def can_part(problem: Problem) -> bool:
    """True if devices could split some edge, and the number of edges is within the limit."""
    edges = len(problem.consumers)
    return problem.d > 1 and 0 < edges <= EDGES and edges * problem.d**2 <= PAIRS


def parted(problem: Problem, paths: Paths) -> tuple[Floats, NDArray[np.int32]]:
    """Seconds (e,) of the longest path through each edge with a transfer, and the units (e, 2) of
    its two ops."""
    through = _core.bounds.parted_paths(core_problem(problem), paths.heads, paths.tails)
    ends = np.stack([edge_producers(problem), problem.consumers], axis=1)
    return through, problem.unit[ends]


def busiest(problem: Problem) -> float:
    """Lower bound on the busiest device: the largest unit, an even share, or two units that share a
    device. Infinite if no device may run all of a unit."""
    loads = np.sort(seconds_of_units(problem).min(axis=1))[::-1]
    # Of the d + 1 largest units two share a device; they take at least as long as the two smallest.
    two = loads[problem.d - 1 : problem.d + 1].sum() if len(loads) > problem.d else 0.0
    return float(max(loads[0], loads.sum() / problem.d, two))


def united(problem: Problem, pairs: NDArray[np.int32]) -> Ints:
    """(units,) component of each unit, where pairs (k, 2) of units are edges."""
    into = list(range(problem.units))

    def part(unit: int) -> int:
        while into[unit] != unit:
            # Path halving keeps the trees of the union-find flat.
            into[unit] = into[into[unit]]
            unit = into[unit]
        return unit

    for a, b in pairs.tolist():
        into[part(a)] = part(b)
    parts = [part(unit) for unit in range(problem.units)]
    return np.unique(parts, return_inverse=True)[1].astype(np.int64)
