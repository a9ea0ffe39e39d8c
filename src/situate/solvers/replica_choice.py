"""Choice of the parameters that stay unreplicated in a step with replicas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from situate.data.problem import Problem
from situate.data.replicas import replicated, with_once
from situate.solvers.heuristics import data_parallel
from situate.solvers.search import Search

PARTS = 4
"""Number of parts into which a list of parameters is cut; prefixes of parts are candidates."""


def parameters_once(problem: Problem) -> tuple[str, ...]:
    """The parameters that `data_parallel` plans better without copies: none, all, the largest, or
    the last ones read.

    Copies of large parameters take the most memory and update time. Parameters that are read last
    can be sent while the step computes. Ties go to the fewest bytes of copies.

    Args:
        problem: of a step with replicas; without replicas the result is empty.
    """
    nbytes = replicated(problem.graph)
    if not nbytes:
        return ()

    def score(once: tuple[str, ...]) -> tuple[int, float, int]:
        variant = replace(problem, graph=with_once(problem.graph, frozenset(once)))
        search = Search(variant)
        data_parallel.run(search)
        return *search.incumbent.score, -sum(nbytes[name] for name in once)

    return min(dict.fromkeys(_candidates(nbytes)), key=score)


def _candidates(nbytes: dict[str, int]) -> Iterator[tuple[str, ...]]:
    """Sets of parameters, each in the order of the graph."""
    names = list(nbytes)
    by_size = sorted(names, key=lambda name: -nbytes[name])
    for order in (by_size, names[::-1]):
        for part in range(PARTS + 1):
            first = {*order[: len(order) * part // PARTS]}
            yield tuple(name for name in names if name in first)
