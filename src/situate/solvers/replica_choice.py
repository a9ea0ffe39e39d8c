"""A choice of the parameters that are there once beside replicas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from situate.data.problem import Problem
from situate.data.replicas import replicated, with_once
from situate.solvers.heuristics import data_parallel
from situate.solvers.search import Search

PARTS = 4
"""Parts of the parameters, in an order, of which the first few are tried together."""


def parameters_once(problem: Problem) -> tuple[str, ...]:
    """The parameters that are better there once, by the plans of `data_parallel`: none, all, the
    largest, or those that are read last.

    Copies of large ones take most memory, and their updates most time; those that are read last
    can be sent while the step computes. Of equal plans that with the fewest bytes of copies is
    chosen.

    Args:
        problem: of a step with replicas; without them there is nothing to choose.
    """
    nbytes = replicated(problem.graph)
    if not nbytes:
        return ()

    def score(once: tuple[str, ...]) -> tuple[int, float, int]:
        tried = replace(problem, graph=with_once(problem.graph, frozenset(once)))
        search = Search(tried)
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
