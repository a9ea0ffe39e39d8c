"""Ops that a step is too short to part: the transfer between them would not fit on their path."""

from __future__ import annotations

import numpy as np

from situate.bounds.paths import Paths
from situate.bounds.transfers import least_transfers
from situate.data.arrays import Floats, Ints
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
    pairs = np.stack([producer, consumer], axis=1)[falling]
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


def _busiest(problem: Problem, pairs: Ints) -> float:
    """Seconds of the busiest device, where each of these pairs (k, 2) of ops shares one: those of
    the largest part, of an even share, or of two parts that have to share one."""
    loads = np.sort(_loads(problem.fastest, pairs))[::-1]
    two = loads[problem.d - 1 : problem.d + 1].sum() if len(loads) > problem.d else 0.0
    return float(max(loads[0], loads.sum() / problem.d, two))


def _loads(seconds: Floats, pairs: Ints) -> Floats:
    """(parts,) seconds of the parts that pairs of ops make of all ops."""
    into = list(range(len(seconds)))

    def part(op: int) -> int:
        while into[op] != op:
            into[op] = into[into[op]]
            op = into[op]
        return op

    for a, b in pairs.tolist():
        into[part(a)] = part(b)
    loads = np.bincount([part(op) for op in range(len(seconds))], seconds)
    return np.asarray(loads)
