"""Favourite children: the consumer of each op that is best run on the op's own device (Hanen and
Munier, 1995; Jeon et al., Baechi, SoCC 2020)."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats, Order
from situate.data.problem import Problem
from situate.data.topology import accelerators, edge_producers, edge_tensors
from situate.solvers.heuristics.favourite_program import FavouriteProgram
from situate.solvers.idle_sources import idle_sources

SHARE = 0.5
"""Share of the time that the linear program may take."""

APART = 0.5
"""An edge of less than this in the relaxed program joins an op and its favourite child: at most one
edge of each op can be."""


def favourite_children(problem: Problem, seconds: float | None) -> Order:
    """(n,) the favourite child of each op, -1 where it has none; none has one where the program is
    not solved in its share of so many seconds.

    Raises:
        MissingExtra: highspy is not installed.
    """
    program = favourite_program(problem)
    apart = program.apart(None if seconds is None else SHARE * seconds)
    is_favourite = program.free & (apart < APART)
    favourite = np.full(problem.n, -1, np.int32)
    favourite[program.producer[is_favourite]] = program.consumer[is_favourite]
    return favourite


def critical_children(problem: Problem, rank: Floats) -> Order:
    """(n,) the child of each op that the longest rest of the step waits for; of two ops with the
    same child, the one of the higher rank has it. No program is solved.

    Args:
        rank: (n,) seconds of the longest way from each op to the end.
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
    """The program of a problem: an edge a pair of an op and one that reads it, with the seconds of
    all tensors between them.

    Sources without work are left out, for they go where they are read. Ops of one unit are on one
    device anyway, and their edges cost nothing.
    """
    producer = edge_producers(problem).astype(np.int64)
    has_work = ~idle_sources(problem)[producer]
    # A pair is one integer; its edges (e,) add up.
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
    """(m,) mean seconds of a tensor between two accelerators; none where there is one only."""
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
    """(n,) mean seconds of an op on the accelerators that may run it, else on all that may."""
    allowed = problem.allowed[problem.unit]
    best = allowed.copy()
    best[:, np.setdiff1d(np.arange(problem.d), accelerators(problem))] = False
    may = np.where(best.any(axis=1, keepdims=True), best, allowed)
    return np.asarray(np.where(may, problem.seconds, 0.0).sum(axis=1) / may.sum(axis=1))
