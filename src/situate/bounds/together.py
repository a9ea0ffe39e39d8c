"""Ops that a step is too short to part: the transfer between them would not fit on their path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.bounds.groups import seconds_of_units
from situate.bounds.paths import Paths
from situate.bounds.transfers import least_transfers
from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors

EDGES = 4_000
"""Most edges of a graph that is looked at, in a tenth of a second."""


def least_together(problem: Problem, paths: Paths) -> float:
    """Seconds of a step in which ops share a device where a transfer between them would make their
    path longer than the step."""
    producer, consumer = edge_producers(problem), problem.consumers
    if not 0 < len(consumer) <= EDGES or problem.d < 2:
        return 0.0
    sent = least_transfers(problem)[edge_tensors(problem)]
    before = paths.head + problem.fastest
    through = before[producer] + sent + (problem.fastest + paths.tail)[consumer]
    falling = np.argsort(-through, kind="stable")
    pairs = problem.unit[np.stack([producer, consumer], axis=1)][falling]
    # The step is no shorter than `lengths[i]`, or parts none of the first i pairs.
    lengths = np.append(through[falling], 0.0)
    low, high = 0, len(pairs)
    while low < high:
        middle = (low + high) // 2
        if _busiest(problem, pairs[:middle]) >= lengths[middle]:
            high = middle
        else:
            low = middle + 1
    # Of all numbers of pairs, the larger of both is least where they cross.
    least = max(_busiest(problem, pairs[:low]), float(lengths[low]))
    return min(least, float(lengths[low - 1])) if low else least


def _busiest(problem: Problem, pairs: NDArray[np.int32]) -> float:
    """Seconds of the busiest device, where the units of each of these pairs (k, 2) share one: those
    of the largest part, of an even share, or of two parts that have to share one. Infinite where no
    device may run all of a part."""
    loads = np.sort(_loads(problem, pairs))[::-1]
    two = loads[problem.d - 1 : problem.d + 1].sum() if len(loads) > problem.d else 0.0
    return float(max(loads[0], loads.sum() / problem.d, two))


def _loads(problem: Problem, pairs: NDArray[np.int32]) -> Floats:
    """(parts,) seconds of the parts that pairs of units make of all, each on the device where it
    takes least."""
    into = list(range(problem.units))

    def part(unit: int) -> int:
        while into[unit] != unit:
            into[unit] = into[into[unit]]
            unit = into[unit]
        return unit

    for a, b in pairs.tolist():
        into[part(a)] = part(b)
    _, of_unit = np.unique([part(unit) for unit in range(problem.units)], return_inverse=True)
    # (parts, d) seconds of each part on each device.
    loads = np.zeros((of_unit.max() + 1, problem.d))
    np.add.at(loads, of_unit, seconds_of_units(problem))
    return np.asarray(loads.min(axis=1))
