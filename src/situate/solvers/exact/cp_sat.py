"""`cp_sat`: an exact search by OR-tools' CP-SAT, whose bound certifies plans."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np

from situate.data.arrays import Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import op_devices, places
from situate.errors import SituateError
from situate.simulation.decoding import order_of, rising
from situate.simulation.transfer_order import TransferOrder, by_priority, transfer_pairs
from situate.solvers.exact.model import Model, build
from situate.solvers.exact.objective import Goal
from situate.solvers.exact.solve import Run, Solution, cp_model
from situate.solvers.exact.variables import OutOfTime, size_of_model
from situate.solvers.heuristics.baselines import single
from situate.solvers.heuristics.fills import topological
from situate.solvers.heuristics.list_rules import etf, heft
from situate.solvers.search import Search

LARGEST = 10_000
"""Largest number of intervals of a model: ops by devices, and transfers by pairs of devices."""

SECONDS_AN_INTERVAL = 1e-4
"""Seconds to build a model, per interval; no model begins with less time left."""

ENDING_RATIO = 0.2
"""Seconds of the solver's start and end, per second of building its model."""

EVALUATIONS_A_SECOND = 1000
"""Evaluations per deterministic second of CP-SAT."""

FIT_SHARE = 0.5
"""Largest share of the budget for the search for a feasible plan."""

OTHER_PLACEMENTS = 20
"""Largest number of further placements after a model's best."""

VARIATIONS = 64
"""Number of orders to try near that of a solution."""

LOAD_SHARE = 0.3
"""Share of the budget after which the search for loads that bound the time ends."""

DECODING_SHARE = 0.1
"""Share of the remaining evaluations for decoding solutions."""


def run(search: Search) -> None:
    """Offer the plans of list rules, then every solution of CP-SAT, and adopt CP-SAT's bound if it
    is tighter.

    Raises:
        MissingExtra: OR-tools is not installed.
        SituateError: the problem is too large.
    """
    cp = cp_model()
    _check_size(search.problem)
    for rule in (single, topological, heft, etf):
        rule(search)
        if search.finished():
            return
    if not search.incumbent.feasible:
        # Calls that wait for one another make a plan infeasible even if its bytes fit.
        with search.budget.reserving(FIT_SHARE):
            _solve(cp, search, "time" if search.incumbent.excess == 0 else "shortfall")
    if search.incumbent.feasible:
        _improve(cp, search)


def _improve(cp: Any, search: Search) -> None:
    """Solve for the objective; for time, first for loads alone, whose bound is cheap."""
    problem = search.problem
    if problem.objective == "time" and problem.transfers != "atomic":
        with search.budget.reserving(1 - LOAD_SHARE):
            _solve(cp, search, "load")
    _solve(cp, search, problem.objective)


def takes(problem: Problem) -> bool:
    """True if the problem is small enough for the method."""
    return size_of_model(problem) <= LARGEST


def _check_size(problem: Problem) -> None:
    if not takes(problem):
        raise SituateError(
            f"method 'cp_sat' is for small problems: the model would have {size_of_model(problem)} "
            "intervals (ops by devices, transfers by pairs of devices), more than "
            f"{LARGEST}: use method 'auto'"
        )


def _solve(cp: Any, search: Search, goal: Goal) -> None:
    """Solve one model within the search's budget and offer its solutions.

    If no decoder reaches the model's best value, solve it again without the tried placements.
    """
    seconds_left = _seconds_left(search)
    making = size_of_model(search.problem) * SECONDS_AN_INTERVAL
    if search.finished() or (seconds_left is not None and seconds_left < making):
        return
    begin = search.budget.seconds
    try:
        model = build(cp, search, goal)
    except OutOfTime:
        return
    ending = ENDING_RATIO * (search.budget.seconds - begin)
    if not _has_time(search, ending):
        return
    run = _run(cp, search, model, ending, bounds=goal in (search.problem.objective, "load"))
    for _ in range(OTHER_PLACEMENTS if model.start else 0):
        if not _has_time(search, ending) or not run.optimal or run.best is None:
            return
        model.forbid(run.best.device)
        model.limit(search.incumbent.excess if goal == "shortfall" else search.incumbent.value)
        run = _run(cp, search, model, ending, bounds=False)


def _has_time(search: Search, ending: float) -> bool:
    """True if there is time for a run of the solver that takes `ending` seconds to end."""
    seconds_left = _seconds_left(search)
    return not search.finished() and (seconds_left is None or seconds_left > ending)


def _run(cp: Any, search: Search, model: Model, ending: float, bounds: bool) -> Run:
    """Run the solver and offer its solutions.

    Args:
        ending: seconds that the solver takes to end.
        bounds: True if the model's bound is one on the search's objective.
    """
    seconds, evaluations_left = _seconds_left(search), _evaluations_left(search)
    # A share of the evaluations is for decoding solutions, the rest for the solver.
    effort = (
        None
        if evaluations_left is None
        else (1 - DECODING_SHARE) * evaluations_left / EVALUATIONS_A_SECOND
    )
    if seconds is not None:
        seconds = max(0.0, seconds - ending)
    run = Run(cp, model, seconds, effort, search.threads, search.seed)
    most = (
        math.inf
        if evaluations_left is None
        else search.budget.evaluations + DECODING_SHARE * evaluations_left
    )
    offered = None
    try:
        with closing(run.solutions()) as solutions:
            for solution in solutions:
                if solution is None:
                    search.report()
                elif search.budget.evaluations < most:
                    _offer(search, solution)
                    offered = solution
    finally:
        if run.best is not None and run.best is not offered:
            _offer(search, run.best)
        _count(search, run)
        if bounds and run.bound is not None:
            search.raise_bound(run.bound, "CP-SAT")
    if run.best is not None:
        _vary(search, run.best)
    return run


def _count(search: Search, run: Run) -> None:
    """Count the solver's work as evaluations if these are limited."""
    if search.budget.evaluation_limit is not None:
        spent = search.budget.evaluations + round(run.effort * EVALUATIONS_A_SECOND)
        search.budget.evaluations = max(
            search.budget.evaluations, min(search.budget.evaluation_limit, spent)
        )


def _vary(search: Search, solution: Solution) -> None:
    """Offer the solution's devices in orders near its own.

    A solution may leave a device idle, but no decoder does. The op that a decoder runs in that gap
    may be better elsewhere.
    """
    if solution.start is None:
        return
    rng = np.random.default_rng(search.seed)
    placement, span = op_devices(search.problem, solution.device), np.ptp(solution.start) + 1
    # Starts move by up to a share of the span, first by little.
    for reach in np.linspace(0.02, 0.5, VARIATIONS) * span:
        if search.finished():
            return
        order = rising(search.problem, solution.start + rng.uniform(0, reach, search.problem.n))
        for decoder in search.decoders:
            search.consider(placement, order, decoder)


def _evaluations_left(search: Search) -> float | None:
    limit = search.budget.evaluation_limit
    return (
        None if limit is None else limit * (1 - search.budget.reserve) - search.budget.evaluations
    )


def _seconds_left(search: Search) -> float | None:
    limit = search.budget.time_limit
    return (
        None
        if limit is None
        else max(0.0, limit * (1 - search.budget.reserve) - search.budget.seconds)
    )


def _offer(search: Search, solution: Solution) -> None:
    """Offer a solution's devices in the order of its starts; if transfers block, also with its
    order of transfers."""
    problem = search.problem
    placement = op_devices(problem, solution.device)
    if solution.start is None:
        search.offer(placement, order_of(problem, search.incumbent.schedule))
        return
    search.offer(placement, rising(problem, solution.start.astype(np.float64)))
    if problem.transfers == "blocking":
        order, transfers = _items_by_start(problem, placement, solution.start, solution.sent)
        search.offer(placement, order, ["serial"], transfers=transfers)


def _items_by_start(
    problem: Problem,
    placement: Placement,
    start: Ints,
    sent_at: Mapping[tuple[int, int], int],
) -> tuple[Order, TransferOrder]:
    """The order (n,) of ops and the order of a placement's transfers, by start.

    At the same instant an op precedes the transfers of its results, and these precede their
    readers.
    """
    tensor, target = transfer_pairs(problem, placement)
    place = places(problem.graph.order)
    # (n + k,) ops and transfers: their starts, and a topological rank.
    arrivals = zip(tensor.tolist(), target.tolist(), strict=True)
    starts = np.concatenate((start, np.array([sent_at[arrival] for arrival in arrivals], np.int64)))
    rank = np.concatenate((2 * place, 2 * place[problem.producer[tensor]] + 1))
    priority = np.empty(len(starts), np.float32)
    # The last key counts first: by start, then by rank.
    priority[np.lexsort((rank, starts))] = np.arange(len(starts), 0, -1)
    of_transfers = np.zeros((len(problem.size), problem.d), np.float32)
    of_transfers[tensor, target] = priority[problem.n :]
    return by_priority(problem, placement, priority[: problem.n], of_transfers)
