"""Solvers: one file a method. `solve` runs any of them within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

import numpy as np

from situate.errors import SituateError, nearest
from situate.problem import Problem
from situate.result import Progress, Result
from situate.solvers.bounds import lower_bound
from situate.solvers.learner import Learning
from situate.solvers.search import Search

METHODS = {
    "single": "single",
    "expert": "expert",
    "random": "random_search",
    "topological": "topological",
    "heft": "heft",
    "etf": "etf",
    "auto": "auto",
    "policy_gradient": "policy_gradient",
    "ppo": "ppo",
    "cross_entropy": "cross_entropy",
    "post": "post",
    "spotlight": "spotlight",
    "colocrl": "colocrl",
    "hierarchical": "hierarchical",
    "metis": "metis",
    "scotch": "scotch",
    "mincut": "mincut",
}
"""Names of the methods, and the modules of this package that hold them."""

LEARNERS = (
    "policy_gradient",
    "ppo",
    "cross_entropy",
    "post",
    "spotlight",
    "colocrl",
    "hierarchical",
)
"""The methods that learn from measured step times alone."""

DEFAULT_SECONDS = 10.0
"""The time limit of a search that is given no budget."""


def solve(
    problem: Problem,
    method: str = "auto",
    *,
    time_limit: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    learning: Learning | None = None,
) -> Result:
    """The best plan that a method finds within its budget.

    Anytime: Ctrl-C ends the search and returns the best plan so far. With a number of evaluations
    and no time limit the result depends on the seed alone, not on the number of threads.

    Args:
        problem: a graph on a cluster.
        method: one of `METHODS`.
        time_limit: wall seconds; None for `DEFAULT_SECONDS`, or where `evaluations` are given or
            the method is one of `LEARNERS` for as long as they take.
        evaluations: decisions to look at; None for as many as the time allows, and for 2,400 in
            a method that learns.
        seed: of all the search's randomness, at least 0.
        threads: at most this many; None for all CPUs.
        on_progress: called now and then, in the calling thread.
        learning: how a method of `LEARNERS` goes about it; None for `Learning()`.

    Raises:
        SituateError: an unknown method, a budget below zero.
    """
    if method not in METHODS:
        raise SituateError(f"unknown method {method!r}{nearest(method, METHODS)}")
    _check_budget(time_limit, evaluations, seed, threads)
    if time_limit is None and evaluations is None and method not in LEARNERS:
        time_limit = DEFAULT_SECONDS
    begin = time.perf_counter()
    run = import_module(f"situate.solvers.{METHODS[method]}").run
    bound = lower_bound(problem)
    search = Search(
        problem, bound, time_limit, evaluations, seed, threads, on_progress, begin, learning
    )
    try:
        run(search)
    except KeyboardInterrupt:
        if search.best is None:
            raise
    return _result(search, method)


def _check_budget(
    time_limit: float | None, evaluations: int | None, seed: int, threads: int | None
) -> None:
    if time_limit is not None and not time_limit >= 0:
        raise SituateError(f"the time limit must not be negative, got {time_limit}")
    if evaluations is not None and evaluations < 1:
        raise SituateError(f"evaluations: must be at least 1, got {evaluations}")
    if not 0 <= seed < 2**32:
        raise SituateError(f"seed: must be between 0 and 2^32, got {seed}")
    if threads is not None and threads < 1:
        raise SituateError(f"threads: must be at least 1, got {threads}")


def _result(search: Search, method: str) -> Result:
    best = search.best
    if best is None:
        raise SituateError(f"method {method!r} found no plan")
    samples = np.concatenate([m.seconds for m in search.measurements] or [np.empty(0)])
    return Result(
        problem=search.problem,
        method=method,
        decoder=best.decoder,
        placement=best.placement,
        order=best.order,
        schedule=best.schedule,
        value=best.value,
        lower_bound=search.lower_bound,
        feasible=best.feasible,
        evaluations=search.evaluations,
        seconds=search.seconds,
        seed=search.seed,
        history=tuple(search.history),
        samples=samples,
        measured=search.measured_best if search.learning.evaluator else None,
    )
