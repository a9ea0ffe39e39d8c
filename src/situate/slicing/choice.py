"""The best way of cutting a batch, found by planning the step in several ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.report.units import time_text
from situate.results.choice import Choice, Tried
from situate.results.result import Result
from situate.slicing.budget import Budget
from situate.slicing.cuts import Cuts
from situate.slicing.shares import WHOLE, Shares, by_device, falling, growing
from situate.solvers import DEFAULT_SECONDS

Solve = Callable[[Problem, float | None, int | None], Result]
"""A search for the best plan of a problem, within a time limit and a number of evaluations; None
where there is no such limit."""

TRIAL = 0.05
"""Share of the budget with which a way of cutting the batch is tried."""

FINALISTS, FINALIST = 2, 0.15
"""The best of them, and the share that each gets before the best gets the rest."""

NEAR = 1.25
"""Times the best value up to which more slices, or more of the budget, may still pay."""

LEAST_GAIN = 0.01
"""Share of the value by which more slices must be better for still more to be tried."""

FINISHED_SHARE = 0.5
"""Share of its limits below which a method that ended has no use for more."""

NO_BUDGET = "the budget was spent on the whole batch: give more of it"


def choose(
    cuts: Cuts,
    solve: Solve,
    time_limit: float | None = None,
    evaluations: int | None = None,
    among: Sequence[Shares] | None = None,
) -> Choice:
    """The best plan that a method finds of a step, whole or in slices.

    Each way of cutting the batch is tried for a short while, the two best go on for longer, and
    the best of these for the rest of the budget. Ctrl-C ends it with what is best so far.

    Args:
        cuts: the step.
        solve: a method.
        time_limit: seconds of all searches together, captures aside; None for
            `DEFAULT_SECONDS`, or where `evaluations` are given for as long as they take.
        evaluations: decisions that all searches together look at.
        among: the ways to try; None to find out which may pay.

    Raises:
        SituateError: the method applies to none of them.
    """
    if time_limit is None and evaluations is None:
        time_limit = DEFAULT_SECONDS
    contest = _Contest(cuts, solve, Budget(time_limit, evaluations))
    try:
        contest.explore() if among is None else contest.try_all(among)
        contest.finish()
    except KeyboardInterrupt:
        if not contest.results:
            raise
    return contest.choice()


class _Contest:
    """The search for the best way of cutting a batch, within one budget.

    Attributes:
        results: the best plan of each way.
        left_out: why others have none.
        uncut: why the batch is not cut.
    """

    def __init__(self, cuts: Cuts, solve: Solve, budget: Budget) -> None:
        self.results: dict[Shares, Result] = {}
        self.left_out: dict[Shares, SituateError | str] = {}
        self.uncut = ""
        self._cuts, self._solve, self._budget = cuts, solve, budget
        self._finished: set[Shares] = set()

    def explore(self) -> None:
        """Try the whole batch; equal slices, one a device and more, or fewer where these do not
        pay; and slices by the speed of unequal devices."""
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
        """Try these."""
        for shares in among:
            self._try(shares)

    def finish(self) -> None:
        """Search on where it pays.

        Raises:
            SituateError: nothing was found.
        """
        if not self.results:
            raise next(e for e in self.left_out.values() if isinstance(e, SituateError))
        finalists = [shares for shares in self._ranked() if self._may_win(shares)][:FINALISTS]
        if len(finalists) > 1:
            for shares in finalists:
                self._search(shares, FINALIST)
        self._search(self._ranked()[0], 1.0)

    def choice(self) -> Choice:
        """The best, and all that was looked at."""
        best = replace(
            self.results[self._ranked()[0]],
            seconds=self._budget.seconds,
            evaluations=self._budget.evaluations,
        )
        looked_at = dict.fromkeys([*self.results, *self.left_out])
        tried = (Tried(s, self.results.get(s), str(self.left_out.get(s, ""))) for s in looked_at)
        return Choice(best, tuple(tried), self._cuts.seconds, self.uncut)

    def _climb(self, way: Iterable[Shares]) -> None:
        """Try one after the other for as long as each is better than the one before."""
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
        """True where no plan can beat the best, which is then said."""
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
        """Search in a part of the budget, and keep what is better."""
        first = not self._budget.evaluations
        if shares in self._finished or not (first or self._budget.affords_another()):
            return
        seconds, evaluations = self._budget.part(part)
        result = self._solve(self._cuts.problem(shares), seconds, evaluations)
        before = self.results.get(shares)
        if before is None or _rank(result) < _rank(before):
            self.results[shares] = self._dated(result)
        self._budget.spend(result, seconds)
        totals = (result.seconds, seconds), (result.evaluations, evaluations)
        if result.optimal or all(
            limit is None or s < FINISHED_SHARE * limit for s, limit in totals
        ):
            self._finished.add(shares)
        if result.interrupted:
            raise KeyboardInterrupt

    def _dated(self, result: Result) -> Result:
        """The result with a history that begins with the first search of all."""
        seconds, evaluations = self._budget.seconds, self._budget.evaluations
        history = ((s + seconds, e + evaluations, value) for s, e, value in result.history)
        return replace(result, history=tuple(history))

    def _ranked(self) -> list[Shares]:
        return sorted(self.results, key=lambda shares: _rank(self.results[shares]))

    @property
    def _best(self) -> Result | None:
        return min(self.results.values(), key=_rank, default=None)

    def _may_win(self, shares: Shares) -> bool:
        """True where a longer search may find the best plan of all."""
        result, best = self.results[shares], self.results[self._ranked()[0]]
        if shares in self._finished or not self._is_near(result):
            return False
        return result.lower_bound is None or result.lower_bound < best.value

    def _is_near(self, result: Result) -> bool:
        best = self._best
        if best is None or not (best.feasible and result.feasible):
            return True
        return _value(result) <= NEAR * _value(best)


def _rank(result: Result) -> tuple[int, float, int]:
    """The smaller, the better: bytes that are too many, the value, and the number of slices."""
    slices = result.problem.graph.slices
    excess = result.schedule.excess(result.problem)
    return excess, _value(result), len(slices.shares) if slices else 0


def _value(result: Result) -> float:
    """The value, with what devices cost one another where that was measured."""
    return result.expected if result.problem.objective == "time" else result.value


def _gains(now: Result, before: Result | None) -> bool:
    """True where a plan is better by what makes it worth going on in the same way."""
    if before is None:
        return True
    excess, least, _ = _rank(before)
    return (_rank(now)[0], _value(now)) < (excess, (1 - LEAST_GAIN * (excess == 0)) * least)
