"""Favourite children: for each op, the consumer that should share its device (Hanen and Munier,
1995; Jeon et al., Baechi, SoCC 2020)."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats, Order
from situate.data.problem import Problem
from situate.data.topology import accelerators, edge_producers, edge_tensors
from situate.solvers.heuristics.favourite_program import FavouriteProgram
from situate.solvers.idle_sources import idle_sources

SHARE = 0.5
"""Largest share of the time for the linear program."""

MAX_FAVOURITE_X = 0.5
"""An edge with x below this in the relaxed program joins an op and its favourite child. At most one
edge of an op is below it."""


def favourite_children(problem: Problem, seconds: float | None) -> Order:
    """(n,) the favourite child of each op; -1 for none.

    If the program is not solved in its share of `seconds`, no op has one.

    Raises:
        MissingExtra: highspy is not installed.
    """
    program = favourite_program(problem)
    apart = program.apart(None if seconds is None else SHARE * seconds)
    is_favourite = program.free & (apart < MAX_FAVOURITE_X)
    favourite = np.full(problem.n, -1, np.int32)
    favourite[program.producer[is_favourite]] = program.consumer[is_favourite]
    return favourite


def critical_children(problem: Problem, rank: Floats) -> Order:
    """(n,) for each op, the child on its longest path to the end; -1 for none.

    A child of several ops belongs to the op of the highest rank. No linear program is needed.

    Args:
        rank: (n,) seconds of the longest path from each op to the end.
    """
    program = favourite_program(problem)
    behind = program.transfer + rank[program.consumer]
    favourite = np.full(problem.n, -1, np.int32)
    has_parent = np.zeros(problem.n, np.bool_)
    for edge in np.lexsort((-behind, -rank[program.producer])).tolist():
        op, child = program.producer[edge], program.consumer[edge]
        if program.free[edge] and favourite[op] < 0 and not has_parent[child]:
            favourite[op], has_parent[child] = child, True
    return favourite


def favourite_program(problem: Problem) -> FavouriteProgram:
    """The linear program of a problem, with one edge per pair of an op and its reader.

    An edge has the transfer seconds of all tensors between the two. Sources without work have no
    edges, because they go to their readers. Edges within a unit cost nothing, because its ops share
    a device.
    """
    producer = edge_producers(problem).astype(np.int64)
    has_work = ~idle_sources(problem)[producer]
    # A pair is one integer; the seconds of its edges (e,) add up.
    pair, place = np.unique(
        (producer * problem.n + problem.consumers)[has_work], return_inverse=True
    )
    transfer = np.zeros(len(pair))
    np.add.at(transfer, place, _transfer_seconds(problem)[edge_tensors(problem)][has_work])
    before, after = np.divmod(pair, problem.n)
    free = problem.unit[before] != problem.unit[after]
    return FavouriteProgram(
        _op_seconds(problem), before, after, np.where(free, transfer, 0.0), free
    )


def _transfer_seconds(problem: Problem) -> Floats:
    """(m,) mean seconds of a tensor between two accelerators; zero if there is only one."""
    devices = accelerators(problem)
    pairs = [(a, b) for a in devices for b in devices if a != b]
    if not pairs:
        return np.zeros(len(problem.size))
    latency = np.mean([problem.latency[pair] for pair in pairs])
    per_byte = np.mean([1 / problem.bandwidth[pair] for pair in pairs])
    own, size = problem.transfer_seconds, problem.size
    seconds = np.where(problem.signal, 0.0, latency + size * per_byte)
    return np.asarray(np.where(np.isnan(own), seconds, own) + problem.cluster.synchronisation)


def _op_seconds(problem: Problem) -> Floats:
    """(n,) mean seconds of an op on the accelerators that may run it, else on all such devices."""
    allowed = problem.allowed[problem.unit]
    best = allowed.copy()
    best[:, np.setdiff1d(np.arange(problem.d), accelerators(problem))] = False
    may = np.where(best.any(axis=1, keepdims=True), best, allowed)
    return np.asarray(np.where(may, problem.seconds, 0.0).sum(axis=1) / may.sum(axis=1))
