"""Choices about a step before it is planned: recomputed modules, sums, unreplicated parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from situate.data.problem import Problem
from situate.data.recompute import ALL, recomputed_modules
from situate.data.replicas import replicated, with_once
from situate.data.slices import Sums
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.heuristics.data_parallel import data_parallel
from situate.solvers.search import Search

EVALUATIONS = 2000
"""Evaluations of the short search that compares a choice."""

SHORTAGE_RATIO = 1.01
"""Memory is short if it makes the objective worse by more than this factor."""

ProblemOf = Callable[[Sequence[str]], Problem]


PARTS = 4
"""Number of parts into which a list of parameters is cut; prefixes of parts are candidates."""


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
    # Only counts above the largest worse one may be better with fewer modules.
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


def better_sums(chain: Problem, tree: Problem) -> Sums:
    """The order for which a short search finds the better plan. Ties go to the chain, which keeps
    fewer sums alive. The result depends on the problems alone.

    Args:
        chain, tree: the step with its gradients added up in either order.
    """
    return "tree" if _best(tree) < _best(chain) else "chain"


def _best(problem: Problem) -> tuple[int, float]:
    """(excess bytes, value) of the best plan."""
    result = solve(problem, evaluations=EVALUATIONS)
    return result.schedule.excess(problem), result.value


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
        data_parallel(search)
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
