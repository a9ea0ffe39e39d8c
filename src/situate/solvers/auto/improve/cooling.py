"""The cooling schedule of annealing: intervals between two checks of the clock, each with its
temperature and evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from situate.data.problem import Problem
from situate.schedule.load import transfer_seconds
from situate.solvers.search import Search

INTERVAL = 0.05
"""Largest wall seconds between two checks of the clock, the best plan and Ctrl-C."""

INTERVALS_AT_LEAST = 40
"""Least number of intervals in a time limit, so that short searches cool gradually too."""

OFFERS_TO_AN_INTERVAL = 5
"""Least length of an interval, in offers."""

INTERVALS = 200
"""Number of intervals of a search that is limited by evaluations alone."""

MOST_EVALUATIONS = 2**31
"""Evaluations of a chain in an interval without another limit; the core counts in 64 bits."""

CHAINS = 2
"""Chains of a search that is limited by evaluations alone, whatever its threads."""

OFFERS_AN_INTERVAL = 4
"""Largest expected number of offers at the end of an interval."""


@dataclass(frozen=True)
class Cooling:
    """A cooling schedule.

    Attributes:
        round_ends: the ends of its rounds as fractions of the budget; each round starts from the
            incumbent.
        hottest, coldest: temperatures at the two ends of a round.
        to_recover: evaluations per op needed for annealing to begin at full temperature.
    """

    round_ends: tuple[float, ...]
    hottest: float
    coldest: float
    to_recover: int


OVERLAPPED = Cooling((0.2, 0.5, 1.0), 0.1, 0.0003, to_recover=100)
"""Temperatures as fractions of the typical change of a move."""

BLOCKING = Cooling((1.0,), 2.0, 0.03, to_recover=500)
"""Temperatures in units of `blocking_scale`. A move changes all later stops of devices for each
other, so one long hot round works better than several colder ones."""

OF_AN_OP, OF_A_TRANSFER = 0.1, 1.25
"""Weights of the mean seconds of an op and of a transfer in the unit of temperature, if transfers
block."""


def blocking_scale(problem: Problem) -> float:
    """The unit of temperature in seconds. It grows with transfers, because a move that saves one
    must first accept others."""
    tensors = np.flatnonzero(np.diff(problem.consumer_start))
    pairs = np.argwhere(~np.eye(problem.d, dtype=bool))  # devices
    transfer = 0.0
    if len(tensors) and len(pairs):
        # Tensors take all links in turn, a sample without random draws.
        links = pairs[np.arange(len(tensors)) % len(pairs)]
        transfer = float(transfer_seconds(problem, tensors, links[:, 0], links[:, 1]).mean())
    return OF_AN_OP * float(problem.fastest.mean()) + OF_A_TRANSFER * transfer


def chains_of(search: Search) -> int:
    """Number of chains: one per thread, but fixed with a limit of evaluations alone, so that the
    result does not depend on the machine."""
    return CHAINS if search.budget.time_limit is None else search.threads


def cooling(search: Search, chains: int, schedule: Cooling) -> Iterator[tuple[float, int, bool]]:
    """For each interval: (temperature in the unit of the schedule, evaluations per chain, True if a
    round begins).

    Ends when the budget leaves no time for the offers after an interval, or after an interval
    without evaluations.
    """
    begin, current, before = 1 - search.budget.remaining(), -1, -1
    offers = min(chains, OFFERS_AN_INTERVAL)
    while (
        not search.finished()
        and search.budget.affords(offers)
        and search.budget.evaluations > before
    ):
        before = search.budget.evaluations
        progress = (1 - search.budget.remaining() - begin) / max(1 - begin, 1e-9)
        ends = schedule.round_ends
        now = next((r for r, end in enumerate(ends) if progress < end), len(ends) - 1)
        first = ends[now - 1] if now else 0.0
        # Geometric from the hottest to the coldest over each round.
        within = (progress - first) / (ends[now] - first)
        temperature = schedule.hottest * (schedule.coldest / schedule.hottest) ** within
        yield temperature, evaluations_of(search, chains), now > current
        current = now


def interval_seconds(search: Search) -> float:
    """Wall seconds of the next interval; infinite without a time limit, so that the clock does not
    change the result."""
    if search.budget.time_limit is None:
        return math.inf
    shortest = OFFERS_TO_AN_INTERVAL * search.budget.offer_seconds()
    interval = max(search.budget.time_limit / INTERVALS_AT_LEAST, shortest)
    return max(0.0, min(INTERVAL, interval, search.budget.time_limit - search.budget.seconds))


def evaluations_of(search: Search, chains: int) -> int:
    """Evaluations of one chain in an interval."""
    if search.budget.evaluation_limit is None:
        return MOST_EVALUATIONS
    remaining = search.budget.evaluation_limit - search.budget.evaluations
    if search.budget.time_limit is None:
        # Intervals are equal shares of the evaluations, independent of the clock.
        remaining = min(remaining, search.budget.evaluation_limit // INTERVALS)
    return min(MOST_EVALUATIONS, max(1, remaining // chains))
