"""The best way of cutting a batch, by planning the step in several ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.report.units import time_text
from situate.results.choice import Choice, SliceTrial
from situate.results.result import Result
from situate.slicing.cuts import Cuts
from situate.slicing.shares import WHOLE, Shares, by_device, falling, growing
from situate.solvers import DEFAULT_SECONDS

Solve = Callable[[Problem, float | None, int | None], Result]
"""A search for the best plan of a problem, within a time limit in seconds and a number of
evaluations; None for no limit."""

TRIAL = 0.05
"""Share of the budget for the first search of each way of cutting the batch."""

FINALISTS, FINALIST = 2, 0.15
"""Number of finalists, and the share of the budget for each before the best gets the rest."""

MAX_VALUE_RATIO = 1.25
"""Largest ratio to the best value at which more slices, or more budget, may still pay."""

LEAST_GAIN = 0.01
"""Least relative gain from more slices that justifies trying still more."""

FINISHED_SHARE = 0.5
"""A method that ends within this share of its limits needs no larger budget."""

NO_BUDGET = "the budget was spent on the whole batch: give more of it"


def choose(
    cuts: Cuts,
    solve: Solve,
    time_limit: float | None = None,
    evaluations: int | None = None,
    among: Sequence[Shares] | None = None,
) -> Choice:
    """The best plan of a step by one method, whole or in slices.

    Each way of cutting the batch gets a short search, the two best a longer one, and the best of
    these the rest of the budget. Ctrl-C ends the search with the incumbent.

    Args:
        cuts: the step.
        solve: a method.
        time_limit: seconds of all searches together, without captures; None for
            `DEFAULT_SECONDS`, or for no limit if `evaluations` is given.
        evaluations: evaluated decisions of all searches together.
        among: the ways to try; None to choose them by their results.

    Raises:
        SituateError: the method applies to none of them.
    """
    if time_limit is None and evaluations is None:
        time_limit = DEFAULT_SECONDS
    contest = _Contest(cuts, solve, SharedBudget(time_limit, evaluations))
    try:
        contest.explore() if among is None else contest.try_all(among)
        contest.finish()
    except KeyboardInterrupt:
        if not contest.results:
            raise
    return contest.choice()


class SharedBudget:
    """Seconds and evaluations shared by several searches; captures do not count.

    Attributes:
        seconds, evaluations: spent so far.
    """

    def __init__(self, time_limit: float | None, evaluations: int | None) -> None:
        self.seconds, self.evaluations = 0.0, 0
        self._time_limit, self._limit = time_limit, evaluations
        self._over = 0.0

    def affords_another(self) -> bool:
        """True if there is time for another search, even if it overruns like the worst so far."""
        timely = self._time_limit is None or self.seconds + self._over < self._time_limit
        return timely and (self._limit is None or self.evaluations < self._limit)

    def part(self, share: float) -> tuple[float | None, int | None]:
        """Seconds and evaluations of a share of the budget, limited by the rest."""
        seconds, evaluations = self._time_limit, self._limit
        if seconds is not None:
            seconds = max(0.0, min(share * seconds, seconds - self.seconds))
        if evaluations is not None:
            evaluations = max(1, min(int(share * evaluations), evaluations - self.evaluations))
        return seconds, evaluations

    def spend(self, result: Result, seconds: float | None) -> None:
        """Count the cost of a search with a limit of `seconds`."""
        self.seconds += result.seconds
        self.evaluations += result.evaluations
        if seconds is not None:
            self._over = max(self._over, result.seconds - seconds)


class _Contest:
    """The search for the best way of cutting a batch, within one budget.

    Attributes:
        results: the best plan of each way.
        left_out: the reasons that other ways have no plan.
        uncut: the reason for not cutting the batch.
    """

    def __init__(self, cuts: Cuts, solve: Solve, budget: SharedBudget) -> None:
        self.results: dict[Shares, Result] = {}
        self.left_out: dict[Shares, SituateError | str] = {}
        self.uncut = ""
        self._cuts, self._solve, self._budget = cuts, solve, budget
        self._finished: set[Shares] = set()

    def explore(self) -> None:
        """Try the whole batch, equal slices, and slices by the speed of unequal devices.

        Equal slices start at one per device and go up; if these do not pay, they go down.
        """
        self._try(WHOLE)
        if not self._budget.affords_another():
            self.uncut = NO_BUDGET
            return
        try:
            batch = self._cuts.batch
        except SituateError as error:
            if self._cuts.options.axes:
                raise
            self.uncut = str(error)
            return
        whole, devices = self._cuts.whole, len(accelerators(self._cuts.whole))
        self._climb(growing(batch, devices))
        if self._ranked()[:1] in ([], [WHOLE]):
            self._climb(falling(batch, devices))
        if WHOLE in self.results:
            self._climb(by_device(whole, batch, self.results[WHOLE].schedule))

    def try_all(self, among: Sequence[Shares]) -> None:
        """Try these ways of cutting the batch."""
        for shares in among:
            self._try(shares)

    def finish(self) -> None:
        """Continue the search for the finalists, then for the best.

        Raises:
            SituateError: no way has a plan.
        """
        if not self.results:
            raise next(e for e in self.left_out.values() if isinstance(e, SituateError))
        finalists = [shares for shares in self._ranked() if self._may_win(shares)][:FINALISTS]
        if len(finalists) > 1:
            for shares in finalists:
                self._search(shares, FINALIST)
        self._search(self._ranked()[0], 1.0)

    def choice(self) -> Choice:
        """The best plan, and all ways of cutting the batch."""
        best = replace(
            self.results[self._ranked()[0]],
            seconds=self._budget.seconds,
            evaluations=self._budget.evaluations,
        )
        looked_at = dict.fromkeys([*self.results, *self.left_out])
        trials = (
            SliceTrial(s, self.results.get(s), str(self.left_out.get(s, ""))) for s in looked_at
        )
        return Choice(best, tuple(trials), self._cuts.seconds, self.uncut)

    def _climb(self, way: Iterable[Shares]) -> None:
        """Try ways in turn, as long as each is better than the one before."""
        before: Result | None = None
        for shares in way:
            if self._is_hopeless(shares):
                continue
            self._try(shares)
            now = self.results.get(shares)
            if now is None or not self._is_near(now) or not _gains(now, before):
                return
            before = now

    def _is_hopeless(self, shares: Shares) -> bool:
        """True if no plan of this cut can beat the incumbent; the reason is recorded."""
        best, least = self._best, self._cuts.least(shares)
        if shares in self.results or best is None or not best.feasible or least < best.value:
            return False
        self.left_out[shares] = f"takes {time_text(least, best.problem.graph.unit)} at least"
        return True

    def _try(self, shares: Shares) -> None:
        if shares in self.results:
            return
        try:
            self._search(shares, TRIAL)
        except SituateError as error:
            self.left_out[shares] = error

    def _search(self, shares: Shares, part: float) -> None:
        """Search within a share of the budget, and keep the better plan."""
        first = not self._budget.evaluations
        # The first search always runs, so that there is a plan to return.
        if shares in self._finished or not (first or self._budget.affords_another()):
            return
        seconds, evaluations = self._budget.part(part)
        result = self._solve(self._cuts.problem(shares), seconds, evaluations)
        before = self.results.get(shares)
        if before is None or _rank(result) < _rank(before):
            self.results[shares] = self._dated(result)
        self._budget.spend(result, seconds)
        # A method far from its limits has converged: more budget would give the same plan.
        totals = (result.seconds, seconds), (result.evaluations, evaluations)
        if result.optimal or all(
            limit is None or s < FINISHED_SHARE * limit for s, limit in totals
        ):
            self._finished.add(shares)
        if result.interrupted:
            raise KeyboardInterrupt

    def _dated(self, result: Result) -> Result:
        """The result with a history that begins at the first search."""
        seconds, evaluations = self._budget.seconds, self._budget.evaluations
        history = ((s + seconds, e + evaluations, value) for s, e, value in result.history)
        return replace(result, history=tuple(history))

    def _ranked(self) -> list[Shares]:
        return sorted(self.results, key=lambda shares: _rank(self.results[shares]))

    @property
    def _best(self) -> Result | None:
        return min(self.results.values(), key=_rank, default=None)

    def _may_win(self, shares: Shares) -> bool:
        """True if a longer search may find the best plan of all."""
        result, best = self.results[shares], self.results[self._ranked()[0]]
        if shares in self._finished or not self._is_near(result):
            return False
        return result.lower_bound is None or result.lower_bound < best.value

    def _is_near(self, result: Result) -> bool:
        best = self._best
        if best is None or not (best.feasible and result.feasible):
            return True
        return _value(result) <= MAX_VALUE_RATIO * _value(best)


def _rank(result: Result) -> tuple[int, float, int]:
    """Sort key, smallest first: bytes above the limits, the value, the number of slices."""
    slices = result.problem.graph.slices
    excess = result.schedule.excess(result.problem)
    return excess, _value(result), len(slices.shares) if slices else 0


def _value(result: Result) -> float:
    """The value; for `time` the expected one, which includes measured contention."""
    return result.expected if result.problem.objective == "time" else result.value


def _gains(now: Result, before: Result | None) -> bool:
    """True if the plan is better by enough to try still more slices."""
    if before is None:
        return True
    # While plans do not fit, any reduction of the excess pays; then the value must fall by 1 %.
    excess, least, _ = _rank(before)
    return (_rank(now)[0], _value(now)) < (excess, (1 - LEAST_GAIN * (excess == 0)) * least)
