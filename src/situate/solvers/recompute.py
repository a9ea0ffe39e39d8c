"""Choice of the modules that a step recomputes because memory is short."""

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
"""Evaluations of the search for each number of modules."""

SHORTAGE_RATIO = 1.01
"""Memory is short if it makes the objective worse by more than this factor."""

ProblemOf = Callable[[Sequence[str]], Problem]


def with_recompute(problem_of: ProblemOf, threads: int | None = None) -> Problem:
    """The problem of a step that recomputes as many modules of `ALL` as memory requires.

    Modules that free the most bytes per second of recomputation come first. A short search by
    `auto` compares none, one, two, four, ... and all modules; bisection then tries fewer. A plan
    that fits beats one that does not; then the smaller objective wins. The result depends on the
    problem alone.

    Args:
        problem_of: makes the problem of a step that recomputes the named modules, as
            `situate.capture` takes them.
        threads: at most this many; None for all CPUs.

    Raises:
        SituateError: the step has no module to recompute.
    """
    whole = _best_plan(problem_of(()), threads)
    if not _is_short(whole, threads):
        return whole.problem
    order = by_gain(problem_of((ALL,)))
    plans = {0: whole}
    for count in _counts(len(order)):
        plans[count] = _best_plan(problem_of(order[:count]), threads)
    best = min(plans, key=lambda count: (_rank(plans[count]), count))
    below = max((count for count in plans if count < best), default=best)
    while best - below > 1:
        middle = (below + best) // 2
        plans[middle] = _best_plan(problem_of(order[:middle]), threads)
        if _rank(plans[middle]) <= _rank(plans[best]):
            best = middle
        else:
            below = middle
    return plans[best].problem


def by_gain(problem: Problem) -> list[str]:
    """Names of the recomputed modules, by decreasing freed bytes per second on the fastest
    devices."""
    modules = recomputed_modules(problem.graph)
    cost = [float(problem.fastest[list(module.ops)].sum()) for module in modules]
    gain = [b.freed / c if c else np.inf for b, c in zip(modules, cost, strict=True)]
    return [modules[i].module for i in np.argsort(-np.array(gain), kind="stable")]


def _best_plan(problem: Problem, threads: int | None) -> Result:
    return solve(problem, evaluations=EVALUATIONS, threads=threads)


def _is_short(plan: Result, threads: int | None) -> bool:
    """True if the plan does not fit, the objective is memory, or limits of memory slow it down."""
    if not plan.feasible or plan.problem.objective == "memory":
        return True
    cluster = plan.problem.cluster
    roomy = [msgspec.structs.replace(device, memory=None) for device in cluster.devices]
    free = replace(plan.problem, cluster=replace(cluster, devices=tuple(roomy)))
    return plan.value > SHORTAGE_RATIO * _best_plan(free, threads).value


def _rank(plan: Result) -> tuple[int, float]:
    """(bytes above the capacities, objective value); smaller is better."""
    over = plan.schedule.peak - plan.problem.capacity
    return int(np.maximum(over, 0).sum()), plan.value


def _counts(most: int) -> Iterator[int]:
    """1, 2, 4, ... and the largest."""
    count = 1
    while count < most:
        yield count
        count *= 2
    yield most
