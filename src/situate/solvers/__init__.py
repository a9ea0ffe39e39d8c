"""Planning methods, one file or folder each; `solve` runs any of them within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral

from situate.bounds.lower_bound import bound_in_time
from situate.data.problem import Problem
from situate.errors import SituateError, nearest
from situate.host.thread_limit import at_most
from situate.results.result import Progress, Result
from situate.solvers.custom import custom_name
from situate.solvers.learned.learner import Learning, MakeLearner
from situate.solvers.outcome import result_of
from situate.solvers.registry import (
    LEARNERS,
    METHODS,
    OF_SLICES,
    WITH_SETTINGS,
    WITH_WEIGHTS,
    WITH_WORKERS,
    Method,
)
from situate.solvers.search import OutOfTime, Search
from situate.validation import check

__all__ = [
    "LEARNERS",
    "METHODS",
    "OF_SLICES",
    "WITH_SETTINGS",
    "WITH_WEIGHTS",
    "WITH_WORKERS",
    "Method",
    "solve",
]

DEFAULT_SECONDS = 10.0
"""Time limit of a search without a budget."""

OPS_FOR_FIRST_PLAN = 20_000
"""Number of ops above which `auto` makes a first plan before it computes the lower bound."""

FIRST_RULES = ("single", "topological", "heft")
"""Rules for the first plan, the cheapest first."""


def solve(
    problem: Problem,
    method: str | MakeLearner = "auto",
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
        method: a name of `METHODS`; or a function that makes a `Learner` from the problem, the
            `Learning`, the number of samples to come and the seed. The method has its name.
        time_limit: wall seconds for the whole call, the lower bound included. `solve` starts only
            work that fits, but always runs all of `auto`'s rules. None for `DEFAULT_SECONDS`; with
            `evaluations` or a method that learns, None for no limit.
        evaluations: number of decisions to evaluate. None for as many as the time allows, or
            2,400 for a method that learns.
        seed: of all the search's randomness, at least 0.
        threads: at most this many; None for all CPUs.
        on_progress: called now and then, in the calling thread.
        learning: options of a method that learns. Some other methods use its settings, weights or
            workers. None for `Learning()`.

    Raises:
        SituateError: an unknown method, a negative or fractional budget, `learning` for a method
            that does not learn; a learner or an evaluator that breaks the protocol of `Learner` or
            `Evaluator`.
    """
    begin = time.perf_counter()
    check(problem, Problem, "problem")
    check(learning, Learning | None, "learning")
    check(on_progress, Callable | None, "on_progress")
    name, run = _resolve(method, learning or Learning())
    _check_budget(time_limit, evaluations, seed, threads)
    learns = name in LEARNERS or name not in METHODS
    if not learns and learning is not None and learning != _applicable(name, learning):
        learners = ", ".join(LEARNERS)
        raise SituateError(f"learning: method {name!r} does not learn; those that do: {learners}")
    if time_limit is None and evaluations is None and not learns:
        time_limit = DEFAULT_SECONDS
    search = Search(
        problem,
        time_limit=time_limit,
        evaluations=evaluations,
        seed=seed,
        threads=threads,
        on_progress=on_progress,
        begin=begin,
        learning=learning,
        keeps_limit=name == "auto",
    )
    if name == "auto" and problem.n >= OPS_FOR_FIRST_PLAN:
        _offer_first(search)
    bound = bound_in_time(problem, begin, time_limit)
    search.lower_bound, search.bounded_by = bound.value, bound.name
    if not learns:
        search.knows = "told costs"
    try:
        with at_most(search.threads):
            run(search)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        search.interrupted = True
    return result_of(search, name)


def _offer_first(search: Search) -> None:
    """Offer the cheapest rule's plan that fits. Without a time limit, offer the first rule's."""
    problem, hurried = search.problem, search.time_limit is not None
    # No device holds the persistent bytes of all ops: a plan on one device is not worth decoding.
    too_small = problem.persistent.sum() > problem.capacity.max()
    for rule in FIRST_RULES[int(too_small) :] if hurried else FIRST_RULES[:1]:
        try:
            METHODS[rule].run(search)
        except OutOfTime:
            return
        if search.incumbent.feasible:
            return


def _applicable(name: str, learning: Learning) -> Learning:
    """The options that apply to a method which does not learn from measurements."""
    applicable = Learning(learning.settings) if name in WITH_SETTINGS else Learning()
    applicable = (
        replace(applicable, weights=learning.weights) if name in WITH_WEIGHTS else applicable
    )
    return replace(applicable, workers=learning.workers) if name in WITH_WORKERS else applicable


def _resolve(method: str | MakeLearner, learning: Learning) -> tuple[str, Callable[[Search], None]]:
    """The name of a method, and the function that runs it."""
    if not isinstance(method, str):
        name = custom_name(method, METHODS)
        return name, _learned(name, method, learning)
    if method not in METHODS:
        raise SituateError(f"unknown method {method!r}{nearest(method, METHODS)}")
    if method in LEARNERS:
        return method, _learned(method, METHODS[method].learner(), learning)
    # Imported before the search measures what it can afford.
    return method, METHODS[method].function()


def _learned(name: str, make: MakeLearner, learning: Learning) -> Callable[[Search], None]:
    # Imported late: only methods that learn need studies and SQLite.
    if learning.clock == "wall":
        from situate.solvers.learned.asynchronous.wall_run import learn_by_wall_clock

        return partial(learn_by_wall_clock, method=name, make=make)
    from situate.solvers.learned.driver import learn

    return partial(learn, method=name, make=make)


def _check_budget(
    time_limit: float | None, evaluations: int | None, seed: int, threads: int | None
) -> None:
    check(time_limit, float | None, "time_limit")
    if time_limit is not None and not time_limit >= 0:
        raise SituateError(f"the time limit must not be negative, got {time_limit}")
    limits: dict[str, object] = {"evaluations": evaluations, "threads": threads}
    whole = {name: limit for name, limit in limits.items() if limit is not None} | {"seed": seed}
    for name, value in whole.items():
        if not isinstance(value, Integral):
            raise SituateError(f"{name}: must be an integer, got {value!r}")
    if evaluations is not None and evaluations < 1:
        raise SituateError(f"evaluations: must be at least 1, got {evaluations}")
    if not 0 <= seed < 2**32:
        raise SituateError(f"seed: must be between 0 and 2^32, got {seed}")
    if threads is not None and threads < 1:
        raise SituateError(f"threads: must be at least 1, got {threads}")
