"""Local search window by window: a move is timed over a short part of the order, so it costs the
same in a step of a million ops as in a small one."""

from __future__ import annotations

from itertools import count

import numpy as np

from situate import _core
from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.topology import edge_producers, places
from situate.simulation.decoding import order_of
from situate.solvers.incumbent import Candidate
from situate.solvers.late import idle_sources
from situate.solvers.search import Search

MIN_OPS = 4000
"""In smaller steps, annealing of the whole step tries enough moves."""

SHARE = 0.8
"""Share of the remaining budget."""

OFFERS_OF_A_SHORT_SEARCH, SHARE_OF_A_SHORT_SEARCH = 100, 0.95
"""A search with time for fewer offers sweeps over list schedules at once, in this share of the
remaining budget: there is no time for hill climbing, which leads to better plans to sweep over."""

MOVES_AN_OP = 4.0
"""Moves of an op in one sweep from the beginning of the step to its end."""

LEAST_GAIN = 0.0002
"""A sweep that gains less, as a share of the step, is the last."""

SEEDS = 2**32
"""Number of seeds of a search."""

OFFERS_TO_SET_UP = 2
"""Setup and the last offer take less time than so many offers."""


def is_short(search: Search, offers: int = OFFERS_OF_A_SHORT_SEARCH) -> bool:
    """True if the search has a plan that fits, time for fewer others, and may sweep."""
    return _applies(search) and not search.budget.affords(offers)


def sweep_at_once(search: Search, offers: int = OFFERS_OF_A_SHORT_SEARCH) -> None:
    """Sweep over the incumbent if there is no time for better starts.

    Args:
        offers: least time for those, in offers.
    """
    if is_short(search, offers):
        sweep_windows(search, SHARE_OF_A_SHORT_SEARCH)


def sweep_windows(search: Search, share: float = SHARE) -> None:
    """Sweep over the incumbent until a sweep gains little, in a share of the remaining time.

    Searches that are limited by evaluations alone leave it out: a move here is a small part of an
    evaluation.

    Args:
        share: of the remaining budget.
    """
    budget = search.budget
    if not _applies(search) or not budget.affords(OFFERS_TO_SET_UP / share):
        return
    # The share of the whole budget that is to remain for later phases.
    end = (1 - share) * budget.remaining()
    for number in count():
        if search.finished() or (seconds := _seconds_until(search, end)) <= 0:
            return
        before = search.incumbent.value
        # A sweep leaves ops far apart in the order that run at the same time. The order of starts
        # brings them into one window again.
        _sweep(search, _windows(search, number), seconds)
        if before - search.incumbent.value < LEAST_GAIN * before:
            return


def _applies(search: Search) -> bool:
    problem, best = search.problem, search.best
    by_time = problem.objective == "time" and problem.transfers == "overlapped"
    by_time = by_time and problem.n >= MIN_OPS
    fits = best is not None and best.feasible
    return by_time and search.budget.time_limit is not None and fits


def _windows(search: Search, number: int) -> _core.search.WindowSearches:
    """Windows over the incumbent's order of starts, with draws of their own for every sweep."""
    problem, plan = search.problem, search.incumbent
    # (d,) bytes that a device has left at its peak, which moved ops may fill.
    room = np.maximum(0, problem.capacity - plan.schedule.peak).astype(np.int64)
    order = _sources_beside_readers(problem, plan)
    seed = (search.seed + number) % SEEDS
    core = search.simulator.core
    return _core.search.make_window_searches(core, seed, 1, plan.placement, order, room)


def _sources_beside_readers(problem: Problem, plan: Candidate) -> Order:
    """The order (n,) of a plan's schedule. Ops that read nothing, take no time and send nothing
    stand before their first reader, so that a window holds them together."""
    place = places(order_of(problem, plan.schedule)).astype(np.float64)
    producer, reader = edge_producers(problem), problem.consumers
    # Such an op on another device than a reader sends, and sends have places of their own.
    here = idle_sources(problem)
    here[producer[plan.placement[producer] != plan.placement[reader]]] = False
    first_use = np.full(problem.n, np.inf)
    np.minimum.at(first_use, producer, place[reader])
    moves = here & np.isfinite(first_use)
    # Half a place before the reader: behind the op that precedes it.
    return np.argsort(np.where(moves, first_use - 0.5, place), kind="stable").astype(np.int32)


def _seconds_until(search: Search, end: float) -> float:
    """Seconds until this share of the budget remains, without those of an offer."""
    budget = search.budget
    assert budget.time_limit is not None
    share = budget.remaining() - end
    return share * budget.time_limit * (1 - budget.reserve) - budget.offer_seconds()


def _sweep(search: Search, windows: _core.search.WindowSearches, seconds: float) -> None:
    """One sweep, or as much of it as the seconds allow, and an offer of its plan."""
    before = windows.evaluations
    try:
        windows.run(MOVES_AN_OP, seconds, search.threads)
    finally:
        search.budget.evaluations += windows.evaluations - before
    _, placement, order = windows.plan(0)
    search.offer(placement, order, ["serial"])
