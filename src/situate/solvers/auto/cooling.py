"""Slices: what annealing does between two looks at the clock, and at which temperature."""

from __future__ import annotations

import math
from collections.abc import Iterator

from situate.solvers.search import Search

INTERVAL = 0.05
"""Wall seconds between two looks at the clock, the best plan and the user's Ctrl-C."""

INTERVALS = 200
"""Slices of a search that is limited by evaluations alone."""

MOST_EVALUATIONS = 2**31
"""Evaluations of a chain in a slice that nothing else limits: the core counts in 64 bits."""

CHAINS = 2
"""Chains of a search that is limited by evaluations alone: as many at any number of threads."""

OFFERS_AN_INTERVAL = 4
"""Offers of what its chains have found that a slice is expected to end with, at most."""

ROUND_ENDS = (0.2, 0.5, 1.0)
"""Ends of the cooling rounds, as fractions of the budget; each round starts from the best plan."""

HOTTEST, COLDEST = 0.1, 0.0003
"""Temperatures at the two ends of a round, as fractions of the typical change of a move."""


def chains_of(search: Search) -> int:
    """One a thread; with a limit of evaluations alone the machine must not decide."""
    return CHAINS if search.time_limit is None else search.threads


def cooling(search: Search, chains: int) -> Iterator[tuple[float, int, bool]]:
    """Temperature (relative), evaluations a chain and whether a round begins, until the budget ends
    but for the time that what a slice finds is offered in, or a slice evaluates nothing."""
    begin, current, before = 1 - search.left(), -1, -1
    offers = min(chains, OFFERS_AN_INTERVAL)
    while not search.finished() and search.affords(offers) and search.evaluations > before:
        before = search.evaluations
        done = (1 - search.left() - begin) / max(1 - begin, 1e-9)
        now = next((r for r, end in enumerate(ROUND_ENDS) if done < end), len(ROUND_ENDS) - 1)
        first = ROUND_ENDS[now - 1] if now else 0.0
        within = (done - first) / (ROUND_ENDS[now] - first)
        temperature = HOTTEST * (COLDEST / HOTTEST) ** within
        yield temperature, evaluations_of(search, chains), now > current
        current = now


def interval_seconds(search: Search) -> float:
    """Without a time limit the clock must not decide."""
    if search.time_limit is None:
        return math.inf
    return max(0.0, min(INTERVAL, search.time_limit - search.seconds))


def evaluations_of(search: Search, chains: int) -> int:
    """What one chain may spend in a slice."""
    if search.evaluation_limit is None:
        return MOST_EVALUATIONS
    left = search.evaluation_limit - search.evaluations
    if search.time_limit is None:
        left = min(left, search.evaluation_limit // INTERVALS)
    return min(MOST_EVALUATIONS, max(1, left // chains))
