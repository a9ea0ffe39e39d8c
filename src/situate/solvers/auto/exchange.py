"""Exchange: two devices trade all they have, where the plan gets better by it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from situate.problem import Problem
from situate.solvers.auto.slices import best
from situate.solvers.expert import accelerators
from situate.solvers.search import Placement, Search

SHARE = 0.02
"""Part of the budget that exchanging takes at most."""


def exchange(search: Search) -> None:
    """Let pair after pair trade, until no pair makes the best plan better.

    Rules place pieces in the order in which devices are listed; over slow links, or on devices of
    different speeds, another order may be far better, and no piece finds it by moving alone.
    """
    least = search.left() - SHARE
    before = None
    while search.best is not before:
        before = search.best
        for a, b in unlike(search.problem):
            if search.finished() or search.left() < least:
                return
            found = best(search)
            traded = trade(search.problem, found.placement, a, b)
            if not np.array_equal(traded, found.placement):
                search.consider(traded, found.order, found.decoder)


def trade(problem: Problem, placement: Placement, a: int, b: int) -> Placement:
    """The placement (n,) with the units of a and b where the other's are, as far as they may."""
    of_unit = np.empty(problem.units, np.int32)
    of_unit[problem.unit] = placement
    to = np.select([of_unit == a, of_unit == b], [b, a], of_unit)
    may = problem.allowed[np.arange(problem.units), to]
    return np.asarray(np.where(may, to, of_unit)[problem.unit], np.int32)


def unlike(problem: Problem) -> Iterator[tuple[int, int]]:
    """Pairs of accelerators of which one cannot stand for the other."""
    for a, b in combinations(accelerators(problem), 2):
        if not (_linked_alike(problem, a, b) and _equal(problem, a, b)):
            yield a, b


def _linked_alike(problem: Problem, a: int, b: int) -> bool:
    turn = np.arange(problem.d)
    turn[[a, b]] = b, a
    turned = np.ix_(turn, turn)
    channel, other = problem.channel, problem.channel[turned]
    pairs = len(np.unique(np.stack([channel.ravel(), other.ravel()]), axis=1).T)
    return (
        np.array_equal(problem.latency, problem.latency[turned])
        and np.array_equal(problem.bandwidth, problem.bandwidth[turned])
        and pairs == len(np.unique(channel))
    )


def _equal(problem: Problem, a: int, b: int) -> bool:
    columns = (problem.capacity, problem.accelerators, problem.allowed, problem.seconds)
    return all(np.array_equal(column[..., a], column[..., b]) for column in columns)
