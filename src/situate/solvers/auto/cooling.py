"""The cooling schedule of annealing: intervals between two looks at the clock, each with its
temperature and its evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from situate.data.problem import Problem
from situate.schedule.load import transfer_seconds
from situate.solvers.search import Search

INTERVAL = 0.05
"""Wall seconds between two looks at the clock, the best plan and the user's Ctrl-C, at most."""

INTERVALS_AT_LEAST = 40
"""Intervals of a time limit, so that a short search cools in as many steps."""

OFFERS_TO_AN_INTERVAL = 5
"""Offers that an interval takes as long as at least."""

INTERVALS = 200
"""Intervals of a search that is limited by evaluations alone."""

MOST_EVALUATIONS = 2**31
"""Evaluations of a chain in an interval that nothing else limits: the core counts in 64 bits."""

CHAINS = 2
"""Chains of a search that is limited by evaluations alone: as many at any number of threads."""

OFFERS_AN_INTERVAL = 4
"""Offers of its chains' plans that an interval is expected to end with, at most."""


@dataclass(frozen=True)
class Cooling:
    """A cooling schedule.

    Attributes:
        round_ends: the ends of its rounds, as fractions of the budget; each round starts from the
            best plan.
        hottest, coldest: temperatures at the two ends of a round.
        to_recover: evaluations an op from which on annealing begins hot.
    """

    round_ends: tuple[float, ...]
    hottest: float
    coldest: float
    to_recover: int


OVERLAPPED = Cooling((0.2, 0.5, 1.0), 0.1, 0.0003, to_recover=100)
"""Temperatures as fractions of the typical change of a move."""

BLOCKING = Cooling((1.0,), 2.0, 0.03, to_recover=500)
"""Temperatures in units of `blocking_scale`. A move changes when devices stop for each other all
the rest of the step, so that one long hot round finds what several colder ones do not."""

OF_AN_OP, OF_A_TRANSFER = 0.1, 1.25
"""Mean seconds of an op and of a transfer that are one unit of temperature in sum, where transfers
block."""


def blocking_scale(problem: Problem) -> float:
    """Seconds: the hotter, the longer transfers take, which moves must put up with to save any."""
    tensors = np.flatnonzero(np.diff(problem.consumer_start))
    pairs = np.argwhere(~np.eye(problem.d, dtype=bool))  # devices
    transfer = 0.0
    if len(tensors) and len(pairs):
        links = pairs[np.arange(len(tensors)) % len(pairs)]
        transfer = float(transfer_seconds(problem, tensors, links[:, 0], links[:, 1]).mean())
    return OF_AN_OP * float(problem.fastest.mean()) + OF_A_TRANSFER * transfer


def chains_of(search: Search) -> int:
    """One a thread; with a limit of evaluations alone the machine must not decide."""
    return CHAINS if search.time_limit is None else search.threads


def cooling(search: Search, chains: int, schedule: Cooling) -> Iterator[tuple[float, int, bool]]:
    """Temperature (in the unit of the schedule), evaluations a chain and whether a round begins,
    for each interval.

    Ends with the budget, but for the time in which the plans of an interval are offered; or where
    an interval evaluated nothing.
    """
    begin, current, before = 1 - search.budget_left(), -1, -1
    offers = min(chains, OFFERS_AN_INTERVAL)
    while not search.finished() and search.affords(offers) and search.evaluations > before:
        before = search.evaluations
        progress = (1 - search.budget_left() - begin) / max(1 - begin, 1e-9)
        ends = schedule.round_ends
        now = next((r for r, end in enumerate(ends) if progress < end), len(ends) - 1)
        first = ends[now - 1] if now else 0.0
        # Geometric from the hottest to the coldest over each round.
        within = (progress - first) / (ends[now] - first)
        temperature = schedule.hottest * (schedule.coldest / schedule.hottest) ** within
        yield temperature, evaluations_of(search, chains), now > current
        current = now


def interval_seconds(search: Search) -> float:
    """Without a time limit the clock must not decide."""
    if search.time_limit is None:
        return math.inf
    shortest = OFFERS_TO_AN_INTERVAL * search.offer_seconds()
    interval = max(search.time_limit / INTERVALS_AT_LEAST, shortest)
    return max(0.0, min(INTERVAL, interval, search.time_limit - search.seconds))


def evaluations_of(search: Search, chains: int) -> int:
    """Evaluations that one chain may spend in an interval."""
    if search.evaluation_limit is None:
        return MOST_EVALUATIONS
    remaining = search.evaluation_limit - search.evaluations
    if search.time_limit is None:
        # The clock must not decide, so intervals are equal shares of the evaluations.
        remaining = min(remaining, search.evaluation_limit // INTERVALS)
    return min(MOST_EVALUATIONS, max(1, remaining // chains))
