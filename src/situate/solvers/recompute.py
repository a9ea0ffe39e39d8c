"""The modules of a step that run again because memory is short, chosen for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from situate.data.problem import Problem
from situate.data.recompute import ALL, recomputed_modules
from situate.results.result import Result
from situate.solvers import solve

EVALUATIONS = 2000
"""Plans that are looked at for a number of modules."""

SLOWED = 1.01
"""Times the makespan without limits of memory from which on memory is called short."""

ProblemOf = Callable[[Sequence[str]], Problem]


def with_recompute(problem_of: ProblemOf, threads: int | None = None) -> Problem:
    """The problem of a step in which as many of the modules of `ALL` run again as memory asks for:
    those first that free most bytes for the time that they take again.

    Of none, one, two, four, ... and all of them a short search by `auto` finds the best number, and
    bisection whether fewer are as good. A plan that fits is better than one that does not; of two
    that do, the one with the better objective. The result depends on the problem alone.

    Args:
        problem_of: makes the problem of the step of names of modules, as `situate.capture` takes
            them.
        threads: at most this many; None for all CPUs.

    Raises:
        SituateError: the step has nothing to run again.
    """
    whole = _planned(problem_of(()), threads)
    if not _is_short(whole, threads):
        return whole.problem
    order = by_gain(problem_of((ALL,)))
    found = {0: whole}
    for count in _counts(len(order)):
        found[count] = _planned(problem_of(order[:count]), threads)
    best = min(found, key=lambda count: (_rank(found[count]), count))
    below = max((count for count in found if count < best), default=best)
    while best - below > 1:
        middle = (below + best) // 2
        found[middle] = _planned(problem_of(order[:middle]), threads)
        if _rank(found[middle]) <= _rank(found[best]):
            best = middle
        else:
            below = middle
    return found[best].problem


def by_gain(problem: Problem) -> list[str]:
    """The modules that run again, those first that free most bytes for the seconds that they take
    on the fastest devices."""
    modules = recomputed_modules(problem.graph)
    cost = [float(problem.fastest[list(module.ops)].sum()) for module in modules]
    gain = [b.freed / c if c else np.inf for b, c in zip(modules, cost, strict=True)]
    return [modules[i].module for i in np.argsort(-np.array(gain), kind="stable")]


def _planned(problem: Problem, threads: int | None) -> Result:
    return solve(problem, evaluations=EVALUATIONS, threads=threads)


def _is_short(found: Result, threads: int | None) -> bool:
    """True where the plan does not fit, or memory is what makes it slow or what is made small."""
    if not found.feasible or found.problem.objective == "memory":
        return True
    cluster = found.problem.cluster
    roomy = [msgspec.structs.replace(device, memory=None) for device in cluster.devices]
    free = replace(found.problem, cluster=replace(cluster, devices=tuple(roomy)))
    return found.value > SLOWED * _planned(free, threads).value


def _rank(found: Result) -> tuple[int, float]:
    """Bytes above the capacities, then the objective's value: the smaller, the better."""
    over = found.schedule.peak - found.problem.capacity
    return int(np.maximum(over, 0).sum()), found.value


def _counts(most: int) -> Iterator[int]:
    """1, 2, 4, ... and the largest."""
    count = 1
    while count < most:
        yield count
        count *= 2
    yield most
