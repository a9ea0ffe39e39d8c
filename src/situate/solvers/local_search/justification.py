"""`justification`: list schedules from the end and from the beginning of the step in turns (Valls,
Ballestín and Quintanilla, Justification and RCPSP, EJOR 165(2), 2005)."""

from __future__ import annotations

import math

from situate import _core
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.search import Search

CHAINS = 2
"""Chains of a search that is limited by evaluations alone, whatever its threads. With a time limit
there is one per thread."""

INTERVAL = 0.05
"""Wall seconds between two checks of the clock."""

MOST_EVALUATIONS = 2**31
"""Largest number of plans that a chain lists between two checks of the clock."""

FIRST_LISTS, MAX_FIRST_RATIO = 5, 1.25
"""The search for a start ends after so many lists of each chain if it is still longer than the best
plan by this factor."""

TRIAL_LISTS = 30
"""Least number of lists of each chain before the search for a start is judged again, unless its
share of the budget is spent before."""

SHARE_TO_FIT = 0.2
"""Share of the remaining budget for these lists while none fits."""

TRIALS = ((0.02, 1.05), (0.1, 1.0))
"""Shares of the remaining budget, after each of which the search for a start ends if it is longer
than the best plan by a factor."""

START_SHARE, SHARE_BEYOND_ONE_DEVICE = 0.1, 0.3
"""Largest shares of the remaining budget for the search for a start; the second applies if the
fastest accelerator cannot hold the step. Moves of single ops then improve a plan slowly."""

LEADING_LISTS, LEADING_SHARE = 100, 0.85
"""Beyond one device, a search for a start that leads may go on until each chain has so many lists,
up to this share of the remaining budget. On large steps they gain more than as many moves."""

MAX_OVER_BOUND = 3
"""A start is offered if its step is at most so many times as long as the lower bound. Worse ones,
such as those of a slow device that holds everything, are poor basins."""

OFFERS_TO_SET_UP = 20
"""Setup of the chains takes less time than so many offers."""


def run(search: Search) -> None:
    """Justify plans until the budget ends.

    Raises:
        SituateError: the objective is not time, or transfers do not overlap with ops.
    """
    if not applies(search.problem):
        raise SituateError(
            "justification makes a step short whose transfers overlap with ops: use auto"
        )
    search.offer(*_core.search.heft(search.simulator.core, 1.0), ["eager"])
    search.budget.evaluations = 1
    chains = _Chains(search)
    while (
        not search.finished()
        and search.budget.affords(chains.count)
        and chains.go(MOST_EVALUATIONS)
    ):
        pass


def offer_start(search: Search, outgrown: bool = False) -> None:
    """Offer the plans of justification in a share of the budget; stop early if they are far from
    the incumbent.

    Args:
        outgrown: True if the fastest accelerator cannot hold the step.
    """
    if not applies(search.problem) or not search.budget.affords(OFFERS_TO_SET_UP):
        return
    longest = MAX_OVER_BOUND * search.lower_bound or math.inf
    chains, budget = _Chains(search, longest), search.budget.remaining()
    incumbent = search.incumbent
    best = incumbent.value if incumbent.feasible else math.inf
    end = (1 - (SHARE_BEYOND_ONE_DEVICE if outgrown else START_SHARE)) * budget
    chains.go(FIRST_LISTS)
    if not chains.fit:
        # Lists leave room for bytes that they do not foresee, more from list to list.
        chains.list_until((1 - SHARE_TO_FIT) * budget, TRIAL_LISTS)
    if not chains.fit or chains.seconds > min(longest, MAX_FIRST_RATIO * best):
        return
    chains.list_until(end, TRIAL_LISTS)
    for part, most in TRIALS:
        chains.list_until((1 - part) * budget)
        if chains.seconds > most * best:
            return
    chains.list_until(end)
    if outgrown and chains.seconds < best:
        chains.list_until((1 - LEADING_SHARE) * budget, LEADING_LISTS)


def applies(problem: Problem) -> bool:
    """True if time is the objective and transfers overlap with ops."""
    return problem.objective == "time" and problem.transfers == "overlapped"


class _Chains:
    """Independent chains.

    Args:
        longest: seconds of a step that is offered, at most.

    Attributes:
        count: number of chains.
        seconds: of the best plan that fits; infinite if there is none.
    """

    def __init__(self, search: Search, longest: float = math.inf) -> None:
        self._search, self._longest = search, longest
        self.count = CHAINS if search.budget.time_limit is None else search.threads
        self._core = _core.search.make_justifications(
            search.simulator.core, search.seed, self.count
        )
        self._best_costs = [(True, math.inf)] * self.count

    @property
    def fit(self) -> bool:
        """True if a plan fits."""
        return math.isfinite(self.seconds)

    @property
    def seconds(self) -> float:
        return min(math.inf if misfit else cost for misfit, cost in self._best_costs)

    def go(self, most: int, until: float = 0.0) -> int:
        """Let every chain list plans, offer new best ones, and return the number of lists.

        Args:
            most: lists per chain, fewer if an interval is over first.
            until: share of the budget that must remain.
        """
        search, before = self._search, self._core.evaluations
        try:
            self._core.run(self._allowed(most, until), self._interval(until), search.threads)
        finally:
            listed = self._core.evaluations - before
            search.budget.evaluations += listed
            self._offer()
        search.report()
        return listed

    def list_until(self, until: float, lists: int = MOST_EVALUATIONS) -> None:
        """List until this share of the budget remains, or each chain has listed so many plans in
        all."""
        while (left := lists - self._core.evaluations // self.count) > 0:
            over = self._search.finished() or self._search.budget.remaining() <= until
            if over or not self.go(left, until):
                return

    def _allowed(self, most: int, until: float) -> int:
        search = self._search
        if search.budget.evaluation_limit is None:
            return most
        budget = (
            (search.budget.remaining() - until)
            * search.budget.evaluation_limit
            * (1 - search.budget.reserve)
        )
        return max(0, min(most, round(budget) // self.count))

    def _interval(self, until: float) -> float:
        """Without a time limit the clock must not decide."""
        search = self._search
        if search.budget.time_limit is None:
            return math.inf
        return max(
            0.0, min(INTERVAL, (search.budget.remaining() - until) * search.budget.time_limit)
        )

    def _offer(self) -> None:
        evaluations = self._search.budget.evaluations
        for chain, before in enumerate(self._best_costs):
            feasible, cost, placement, order = self._core.best(chain)
            if len(order) and (not feasible, cost) < before:
                self._best_costs[chain] = not feasible, cost
                if cost <= self._longest:
                    self._search.offer(placement, order, ["eager"])
        # The core has already counted these evaluations; decoding them again adds none.
        self._search.budget.evaluations = evaluations
