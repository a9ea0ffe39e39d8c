"""Planning methods, one file or folder each; `solve` runs any of them within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

from situate.bounds.lower_bound import bound_in_time
from situate.data.problem import Problem
from situate.errors import SituateError, nearest
from situate.host.machine import at_most
from situate.results.result import Progress, Result
from situate.solvers.budget import Budget, OutOfTime
from situate.solvers.learned.checks import custom_name
from situate.solvers.learned.learner import Learning, MakeLearner
from situate.solvers.learned.telemetry import Telemetry
from situate.solvers.registry import (
    LEARNERS,
    METHODS,
    OF_PARTS,
    OF_SLICES,
    WITH_SETTINGS,
    WITH_WEIGHTS,
    WITH_WORKERS,
    Method,
)
from situate.solvers.search import MethodOptions, Search
from situate.validation import check

__all__ = [
    "LEARNERS",
    "METHODS",
    "OF_PARTS",
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
    name = _name(method)
    # Imported before the search measures what it can afford.
    function: Callable[..., Any] = method if callable(method) else METHODS[name].function()
    _check_budget(time_limit, evaluations, seed, threads)
    _check_settings(name, learning)
    learns = name not in METHODS or METHODS[name].learns
    options = MethodOptions() if learns else _options(name, learning)
    if time_limit is None and evaluations is None and not learns:
        time_limit = DEFAULT_SECONDS
    telemetry = Telemetry() if learns else None
    if telemetry is not None:
        function = _learning(name, function, learning or Learning(), telemetry)
        on_progress = telemetry.reporting(on_progress)
    search = Search(
        problem,
        budget=Budget(time_limit, evaluations, begin=begin, enforced=name == "auto"),
        seed=seed,
        threads=threads,
        on_progress=on_progress,
        options=options,
    )
    if name == "auto" and problem.n >= OPS_FOR_FIRST_PLAN:
        _offer_first(search)
    bound = bound_in_time(problem, begin, time_limit, search.simulator.core)
    search.raise_bound(bound.value, bound.name)
    try:
        with at_most(search.threads):
            function(search)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        search.budget.interrupted = True
    if telemetry is not None:
        return telemetry.result(search, name)
    return search.result(name, knows="told costs")


def _check_settings(name: str, learning: Learning | None) -> None:
    released = learning is not None and learning.settings == "release"
    if released and name in METHODS and not METHODS[name].has_release:
        names = ", ".join(each for each, method in METHODS.items() if method.has_release)
        raise SituateError(
            f"settings: method {name!r} has no 'release'; these do: {names}. Give paper or tuned"
        )


def _offer_first(search: Search) -> None:
    """Offer the cheapest rule's plan that fits. Without a time limit, offer the first rule's."""
    problem, hurried = search.problem, search.budget.time_limit is not None
    # No device holds the persistent bytes of all ops: a plan on one device is not worth decoding.
    too_small = problem.persistent.sum() > problem.capacity.max()
    for rule in FIRST_RULES[int(too_small) :] if hurried else FIRST_RULES[:1]:
        try:
            METHODS[rule].run(search)
        except OutOfTime:
            return
        if search.incumbent.feasible:
            return


def _name(method: str | MakeLearner) -> str:
    """The name of a method, or of a function that makes a learner."""
    if not isinstance(method, str):
        return custom_name(method, METHODS)
    if method not in METHODS:
        raise SituateError(f"unknown method {method!r}{nearest(method, METHODS)}")
    return method


def _options(name: str, learning: Learning | None) -> MethodOptions:
    """The options of a method that does not learn.

    Raises:
        SituateError: `learning` has others than the method takes.
    """
    if learning is None:
        return MethodOptions()
    method, options = METHODS[name], MethodOptions()
    if method.has_settings:
        options = replace(options, settings="paper" if learning.settings == "paper" else "tuned")
    if method.has_weights:
        options = replace(options, weights=learning.weights)
    if method.has_workers:
        options = replace(options, workers=learning.workers)
    if learning != Learning(options.settings, weights=options.weights, workers=options.workers):
        learners = ", ".join(LEARNERS)
        raise SituateError(f"learning: method {name!r} does not learn; those that do: {learners}")
    return options


def _learning(
    name: str, make: MakeLearner, learning: Learning, telemetry: Telemetry
) -> Callable[[Search], object]:
    """The function that runs a method which learns."""
    # Imported late: only methods that learn need studies and SQLite.
    from situate.solvers.learned.driver import learn

    return partial(learn, method=name, make=make, learning=learning, telemetry=telemetry)


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
