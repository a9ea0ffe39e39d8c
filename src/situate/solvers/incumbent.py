"""The incumbent: the best decision of a search so far, and the bound that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.bounds.rounding import gap
from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import DecoderName
from situate.simulation.transfer_order import TransferOrder


@dataclass(frozen=True, eq=False)
class Candidate:
    """A decision with its schedule and score.

    Attributes:
        placement: (n,) device of each op.
        order: (n,) ops, the most urgent first.
        decoder: that made the schedule.
        value: of the objective.
        excess: bytes above the capacities, over all devices.
        transfers: order of the transfers; None if each is as urgent as its most urgent consumer.
    """

    placement: Placement
    order: Order
    decoder: DecoderName
    schedule: Schedule
    value: float
    excess: int
    transfers: TransferOrder | None = None

    @property
    def feasible(self) -> bool:
        """True if the plan fits in memory and the step ends."""
        return self.excess == 0 and bool(np.isfinite(self.value))

    @property
    def score(self) -> tuple[int, float]:
        """(excess, value); smaller is better."""
        return self.excess, self.value


class Incumbent:
    """The best candidate of a search, its history and the lower bound.

    Args:
        problem: whose objective the bound is on.
        lower_bound: on the objective.
        bounded_by: name of that bound.

    Attributes:
        candidate: the best so far; None before the first.
        history: (seconds, evaluations, value) at each improvement.
    """

    def __init__(self, problem: Problem, lower_bound: float = 0.0, bounded_by: str = "") -> None:
        self._problem = problem
        self.lower_bound, self.bounded_by = lower_bound, bounded_by
        self.candidate: Candidate | None = None
        self.history: list[tuple[float, int, float]] = []

    @property
    def feasible(self) -> bool:
        """True if there is a candidate and it fits."""
        return self.candidate is not None and self.candidate.feasible

    def is_beaten_by(self, candidate: Candidate) -> bool:
        """True if the candidate is better, or the first."""
        return self.candidate is None or candidate.score < self.candidate.score

    def replace(self, candidate: Candidate, seconds: float, evaluations: int) -> None:
        """Make a candidate the incumbent, whatever its score, and extend the history."""
        self.history.append((seconds, evaluations, candidate.value))
        self.candidate = candidate

    def proved(self) -> bool:
        """True if the best candidate is feasible and meets the bound."""
        if self.candidate is None or not self.candidate.feasible:
            return False
        return gap(self._problem, self.candidate.value, self.lower_bound) <= 0

    def raise_bound(self, bound: float, name: str) -> None:
        """Adopt a lower bound, with its name, if it is tighter than the current one."""
        # An equal bound only names one that has no name yet.
        if bound > self.lower_bound or (bound == self.lower_bound and not self.bounded_by):
            self.lower_bound, self.bounded_by = bound, name
