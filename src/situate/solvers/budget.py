"""The budget of a search: wall time, evaluations, and the end of both."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from situate import _core
from situate.results.result import Overtime

RECENT_OFFERS = 9
"""Number of recent offers whose median time predicts the next one."""

MIN_ENFORCED_SECONDS = 0.25
"""Least time limit in seconds that `auto` enforces, so that small graphs get all simple rules."""

OutOfTime = _core.search.OutOfTime
"""Raised when the time limit is over and the search has a plan."""

DECODINGS_TO_FIT = 32
"""While nothing fits, a search may last as long as this many decodings, whatever its limit."""

WORK_MARGIN = 1.5
"""Safety factor on the expected seconds of work that begins near an enforced limit."""

OVERTIME_SHARE = 0.02
"""Share of a search's time that may pass after its limit without a notice of overtime."""


class Budget:
    """The wall time and the evaluations that a search may spend.

    With a limit of evaluations alone, the result of a search depends only on its seed.

    Args:
        time_limit: wall seconds; None for no limit.
        evaluation_limit: number of decisions to evaluate; None for no limit.
        begin: value of `time.perf_counter` when the time began; None for now.
        enforced: True if the search ends at its time limit even in the middle of its rules.

    Attributes:
        evaluations: number of decisions evaluated so far.
        reserve: share of the budget that `reserving` holds back.
        decoding_seconds: duration of the last decoding.
        first_plan_late: True if the first plan that fits came after an enforced limit.
        interrupted: True if Ctrl-C ended the search.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        evaluation_limit: int | None = None,
        *,
        begin: float | None = None,
        enforced: bool = False,
    ) -> None:
        self.time_limit = time_limit
        self.evaluation_limit = evaluation_limit
        self.enforced = enforced
        self.evaluations = 0
        self.reserve = 0.0
        self.decoding_seconds = 0.0
        self.first_plan_late = False
        self.interrupted = False
        self._begin = time.perf_counter() if begin is None else begin
        self._offer_times: deque[float] = deque(maxlen=RECENT_OFFERS)

    def beside(self, evaluation_limit: int) -> Budget:
        """Another number of evaluations on the same clock."""
        return Budget(self.time_limit, evaluation_limit, begin=self._begin)

    def part(self, share: float) -> Budget:
        """A share of the remaining budget, on the same clock."""
        time_limit, evaluation_limit = self.time_limit, self.evaluation_limit
        if time_limit is not None:
            seconds = self.seconds
            # Both budgets share one clock, so the limit counts from the same beginning.
            time_limit = seconds + share * max(0.0, time_limit * (1 - self.reserve) - seconds)
        if evaluation_limit is not None:
            remaining = evaluation_limit * (1 - self.reserve) - self.evaluations
            evaluation_limit = max(1, int(share * remaining))
        return Budget(time_limit, evaluation_limit, begin=self._begin, enforced=self.enforced)

    @property
    def seconds(self) -> float:
        """Wall seconds since the search began."""
        return time.perf_counter() - self._begin

    @contextmanager
    def reserving(self, share: float) -> Iterator[None]:
        """Hold back this share of the budget for work after the block."""
        before, self.reserve = self.reserve, share
        try:
            yield
        finally:
            self.reserve = before

    def remaining(self) -> float:
        """The remaining fraction of the budget, between 0 and 1."""
        fractions = [1.0]
        if self.time_limit is not None:
            # The reserved share counts as spent.
            limit = self.time_limit * (1 - self.reserve)
            fractions.append(1 - self.seconds / limit if limit > 0 else 0.0)
        if self.evaluation_limit is not None:
            most = self.evaluation_limit * (1 - self.reserve)
            fractions.append(1 - self.evaluations / most if most > 0 else 0.0)
        return max(0.0, min(fractions))

    def out_of_evaluations(self) -> bool:
        """True if the limit of evaluations is spent."""
        return self.evaluation_limit is not None and self.evaluations >= self.evaluation_limit

    def record_offer(self, seconds: float) -> None:
        """Record the duration of an offer, or of a batch of a method that learns."""
        self._offer_times.append(seconds)

    def offer_seconds(self) -> float:
        """Expected seconds of an offer; 0 before the first one."""
        # A median ignores single offers that other work on the machine slows down.
        times = sorted(self._offer_times)
        return times[len(times) // 2] if times else 0.0

    def affords(self, offers: float) -> bool:
        """True if the remaining time is enough for work as long as so many offers.

        An offer cannot stop halfway. Work is measured in offers so that a time limit holds on any
        machine and any graph.
        """
        if self.time_limit is None or not self._offer_times:
            return True
        expected = offers * self.offer_seconds()
        return self.seconds + expected <= self.time_limit * (1 - self.reserve)

    def seconds_to_end(self, feasible: bool) -> float:
        """Seconds until an enforced limit ends the search; infinite without such a limit.

        Args:
            feasible: True if the search has a plan that fits; without one it may run longer.
        """
        if self.time_limit is None or not self.enforced:
            return np.inf
        # Setup alone may take longer than a tiny limit.
        end = max(self.time_limit, MIN_ENFORCED_SECONDS)
        if not feasible:
            end = max(end, DECODINGS_TO_FIT * self.decoding_seconds)
        return end - self.seconds

    def affords_decoding(self) -> bool:
        """True if an enforced limit leaves time for another decoding of a plan that fits."""
        return self.seconds_to_end(True) >= WORK_MARGIN * self.decoding_seconds

    def overtime(self, feasible: bool) -> Overtime | None:
        """The reason why a search exceeded an enforced limit; None if it did not.

        Args:
            feasible: True if the best plan fits.
        """
        if self.seconds_to_end(True) >= -OVERTIME_SHARE * self.seconds:
            return None
        if feasible:
            return "first plan" if self.first_plan_late else None
        return "no plan"
