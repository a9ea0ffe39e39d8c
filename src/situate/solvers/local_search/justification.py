"""`justification`: list schedules from the end and from the beginning of the step in turns (Valls,
Ballestín and Quintanilla, Justification and RCPSP, EJOR 165(2), 2005)."""

from __future__ import annotations

import math

from situate import _core
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.search import Search

CHAINS = 2
"""Chains where evaluations alone are limited: as many at any number of threads. With a time limit
there is one a thread."""

INTERVAL = 0.05
"""Wall seconds between two looks at the clock."""

MOST_EVALUATIONS = 2**31
"""Plans that a chain lists between two looks at the clock, at most."""

FIRST_LISTS, FAR = 5, 1.25
"""Lists of a chain after which finding a start ends if it is so many times as long as the best plan
known."""

TRIAL_SHARE, NEAR = 0.02, 1.05
"""The same after a share of what is left of the budget."""

START_SHARE = 0.1
"""Share of what is left of the budget that finding a start takes at most."""

OFFERS_TO_SET_UP = 20
"""Offers that take longer than to run the problem backwards and to list the first plans."""


def run(search: Search) -> None:
    """Justify plans until the budget ends.

    Raises:
        SituateError: the objective is not time, or transfers do not overlap with ops.
    """
    if not applies(search.problem):
        raise SituateError(
            "justification makes a step short whose transfers overlap with ops: use auto"
        )
    search.offer(*_core.heft(search.simulator.core, 1.0), ["eager"])
    search.evaluations = 1
    chains = _Chains(search)
    while not search.finished() and search.affords(chains.count) and chains.go(MOST_EVALUATIONS):
        pass


def offer_start(search: Search) -> None:
    """Offer what justification finds in a share of the budget; in less where that is far from the
    best plan known."""
    if not applies(search.problem) or not search.affords(OFFERS_TO_SET_UP):
        return
    chains, best, budget = _Chains(search), search.incumbent.value, search.budget_left()
    chains.go(FIRST_LISTS)
    if chains.seconds > FAR * best:
        return
    for share, most in ((TRIAL_SHARE, NEAR), (START_SHARE, math.inf)):
        until = (1 - share) * budget
        while search.budget_left() > until and not search.finished():
            if not chains.go(MOST_EVALUATIONS, until):
                break
        if chains.seconds > most * best:
            return


def applies(problem: Problem) -> bool:
    """True where time is the objective and transfers overlap with ops."""
    return problem.objective == "time" and problem.transfers == "overlapped"


class _Chains:
    """Independent chains.

    Attributes:
        count: how many there are.
        seconds: of the best plan that fits; infinite while there is none.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self.count = CHAINS if search.time_limit is None else search.threads
        self._core = _core.make_justifications(search.simulator.core, search.seed, self.count)
        self._best_costs = [(True, math.inf)] * self.count

    @property
    def seconds(self) -> float:
        return min(math.inf if misfit else cost for misfit, cost in self._best_costs)

    def go(self, most: int, until: float = 0.0) -> int:
        """Let every chain list so many plans, fewer in an interval's time or where as little of the
        budget would be left, and offer those that are better than all before; how many were listed.
        """
        search, before = self._search, self._core.evaluations
        try:
            self._core.run(self._allowed(most, until), self._interval(until), search.threads)
        finally:
            listed = self._core.evaluations - before
            search.evaluations += listed
            self._offer()
        search.report()
        return listed

    def _allowed(self, most: int, until: float) -> int:
        search = self._search
        if search.evaluation_limit is None:
            return most
        budget = (search.budget_left() - until) * search.evaluation_limit * (1 - search.reserve)
        return max(0, min(most, round(budget) // self.count))

    def _interval(self, until: float) -> float:
        """Without a time limit the clock must not decide."""
        search = self._search
        if search.time_limit is None:
            return math.inf
        return max(0.0, min(INTERVAL, (search.budget_left() - until) * search.time_limit))

    def _offer(self) -> None:
        evaluations = self._search.evaluations
        for chain, before in enumerate(self._best_costs):
            feasible, cost, placement, order = self._core.best(chain)
            if len(order) and (not feasible, cost) < before:
                self._best_costs[chain] = not feasible, cost
                self._search.offer(placement, order, ["eager"])
        # Decoding what was evaluated already is no further evaluation.
        self._search.evaluations = evaluations
