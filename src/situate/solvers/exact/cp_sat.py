"""`cp_sat`: an exact search by OR-tools' CP-SAT, whose bound certifies what is found."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

import numpy as np

from situate.data.topology import op_devices
from situate.errors import SituateError
from situate.simulation.decoding import order_of, rising
from situate.solvers.exact.installed import cp_model
from situate.solvers.exact.model import Goal, build
from situate.solvers.exact.moves import size_of_model
from situate.solvers.exact.solving import Run, Solution
from situate.solvers.heuristics import etf, heft, single, topological
from situate.solvers.search import Search

LARGEST = 20_000
"""Intervals that a model has at most: ops by devices, and transfers by pairs of devices."""

EVALUATIONS_A_SECOND = 1000
"""Evaluations that a deterministic second of CP-SAT counts as."""

FIT_SHARE = 0.5
"""Share of the budget that the search for a plan that fits may take."""

LOAD_SHARE = 0.3
"""Share of the budget after which the search for loads that bound the time ends."""

DECODING_SHARE = 0.1
"""Share of the evaluations left that goes to decoding solutions."""


def run(search: Search) -> None:
    """Offer the plans of list rules, then every solution that CP-SAT finds, and raise the search's
    bound to CP-SAT's where that is better.

    Raises:
        MissingExtra: OR-tools is not installed.
        SituateError: the problem is too large.
    """
    cp = cp_model()
    _check_size(search)
    for rule in (single, topological, heft, etf):
        rule.run(search)
        if search.finished():
            return
    if not search.incumbent.feasible:
        with search.reserving(FIT_SHARE):
            _solve(cp, search, "time" if search.incumbent.excess == 0 else "shortfall")
    if search.incumbent.feasible:
        _improve(cp, search)


def _improve(cp: Any, search: Search) -> None:
    """Solve for the objective; for time first for loads alone, whose bound is there soon."""
    problem = search.problem
    if problem.objective == "time" and problem.transfers != "atomic":
        with search.reserving(1 - LOAD_SHARE):
            _solve(cp, search, "load")
    _solve(cp, search, problem.objective)


def _check_size(search: Search) -> None:
    size = size_of_model(search.problem)
    if size > LARGEST:
        raise SituateError(
            f"method 'cp_sat' is for small problems: the model would have {size} intervals (ops by "
            f"devices, transfers by pairs of devices), more than {LARGEST}: use method 'auto'"
        )


def _solve(cp: Any, search: Search, goal: Goal) -> None:
    """Solve one model within the search's budget, and offer what it finds."""
    if search.finished():
        return
    built = build(cp, search, goal)
    left = _evaluations_left(search)
    effort = None if left is None else (1 - DECODING_SHARE) * left / EVALUATIONS_A_SECOND
    run = Run(cp, built, _seconds_left(search), effort, search.threads, search.seed)
    most = math.inf if left is None else search.evaluations + DECODING_SHARE * left
    last = None
    try:
        with closing(run.solutions()) as solutions:
            for solution in solutions:
                if solution is None:
                    search.report()
                    continue
                last = solution
                if search.evaluations < most:
                    _offer(search, solution)
                    last = None
    finally:
        if last is not None:
            _offer(search, last)
        _account(search, run, goal)


def _evaluations_left(search: Search) -> float | None:
    limit = search.evaluation_limit
    return None if limit is None else limit * (1 - search.reserve) - search.evaluations


def _seconds_left(search: Search) -> float | None:
    limit = search.time_limit
    return None if limit is None else max(0.0, limit * (1 - search.reserve) - search.seconds)


def _offer(search: Search, solution: Solution) -> None:
    """Decode a solution: its devices, in the order of its starts."""
    problem = search.problem
    placement = op_devices(problem, solution.device)
    if solution.start is None:
        search.offer(placement, order_of(problem, search.incumbent.schedule))
    else:
        search.offer(placement, rising(problem, solution.start.astype(np.float64)))


def _account(search: Search, run: Run, goal: Goal) -> None:
    """Count the solver's work, and take its bound where it is one on the objective."""
    if search.evaluation_limit is not None:
        spent = search.evaluations + round(run.effort * EVALUATIONS_A_SECOND)
        search.evaluations = max(search.evaluations, min(search.evaluation_limit, spent))
    if goal in (search.problem.objective, "load") and run.bound is not None:
        search.raise_bound(run.bound)
