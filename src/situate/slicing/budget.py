"""The budget of several searches together."""

from __future__ import annotations

from situate.results.result import Result


class Budget:
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
