"""From decisions to candidates: the decoders, orders and transfers that a search tries for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial

import numpy as np

from situate import _core
from situate.data.arrays import Order, Placement
from situate.data.placements import Restrictions
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import (
    DecoderName,
    decoders_for,
    is_topological,
    order_of,
    priority_of,
    scheduled,
)
from situate.simulation.simulator import Simulator
from situate.simulation.transfer_order import TransferOrder, instant
from situate.solvers.budget import Budget
from situate.solvers.incumbent import Candidate, Incumbent
from situate.solvers.late import Lateness

NEAR_BEST_PEAK = 1.25
"""If a plan's peak exceeds the best by more than this factor, no other decoder is tried."""

NEGLIGIBLE_PEAK_SHARE = 1e-3
"""Least share of the largest peak that a late order must be able to save."""


class Decoding:
    """Makes candidates of decisions.

    Args:
        problem: of the decisions.
        budget: to which decodings and evaluations are charged.
        incumbent: that candidates have to beat.

    Attributes:
        simulator: of the problem.
        decoders: that apply to the problem and its objective.
    """

    def __init__(self, problem: Problem, budget: Budget, incumbent: Incumbent) -> None:
        self._problem, self._budget, self._incumbent = problem, budget, incumbent
        self.simulator = Simulator(problem)
        self.decoders = decoders_for(problem, problem.objective)
        self._restrictions = Restrictions(problem, problem.runnable)

    def best(
        self,
        placement: Placement,
        order: Order,
        decoders: Sequence[DecoderName],
        margin: float = 0.0,
        transfers: TransferOrder | None = None,
    ) -> Candidate:
        """The best candidate of a decision.

        If memory is the objective or the only obstacle, all other decoders are tried too. Each is
        also tried with the order of `Lateness`. Candidates up to `margin` worse than the incumbent
        count as useful.

        Raises:
            SituateError: an op on a device that may not run it, or a group on several devices.
        """
        placement = self.check(placement)
        candidates = list[Candidate]()
        # Each further way depends on the candidates so far, so ways come one by one.
        for decode in self._ways(candidates, placement, order, decoders, margin, transfers):
            candidates.append(decode())
            if self._hurried(candidates):
                break
        self._budget.evaluations += len(candidates)
        return min(candidates, key=lambda candidate: candidate.score)

    def check(self, placement: Placement) -> Placement:
        """A copy of a placement that respects the restrictions of its ops.

        Raises:
            SituateError: see `best`.
        """
        valid: Placement
        [valid] = self._restrictions.check(placement[None], lambda _: "")
        return valid

    def decode(
        self,
        placement: Placement,
        order: Order,
        decoder: DecoderName,
        transfers: TransferOrder | None = None,
    ) -> Candidate:
        """The candidate that one decoder makes of a decision; counts as no evaluation."""
        begin = self._budget.seconds
        schedule = scheduled(self.simulator, placement, order, decoder, transfers)
        self._budget.decoding_seconds = self._budget.seconds - begin
        excess, value = schedule.excess(self._problem), self._value(schedule)
        return Candidate(placement, order, decoder, schedule, value, excess, transfers)

    def estimate(
        self, placement: Placement, order: Order, decoder: DecoderName
    ) -> tuple[int, float]:
        """The score of a decision for time or memory, without a schedule."""
        assert decoder != "calls", "the simulator has no calls"
        self._budget.evaluations += 1
        priority = priority_of(order)[None]
        [seconds], [peak] = self.simulator.evaluate(
            placement[None], priority, decoder=decoder, threads=1
        )
        excess = sum(np.maximum(0, peak - self._problem.capacity).tolist())
        by_time = self._problem.objective == "time"
        return excess, float(seconds if by_time else peak.max())

    def can_estimate(self, decoder: DecoderName) -> bool:
        """True if `estimate` applies; periods and calls need a schedule."""
        return self._problem.objective != "throughput" and decoder != "calls"

    def _ways(
        self,
        candidates: list[Candidate],
        placement: Placement,
        order: Order,
        decoders: Sequence[DecoderName],
        margin: float,
        transfers: TransferOrder | None,
    ) -> Iterator[Callable[[], Candidate]]:
        """Further decodings of a decision, given the `candidates` so far."""
        for decoder in decoders:
            yield partial(self.decode, placement, order, decoder, transfers)
        if transfers is None and self._instant_transfers:
            yield partial(self._sent_together, candidates, order)
        if self._memory_counts(candidates, margin):
            # Peak memory differs between decoders, and only one of them may fit.
            for decoder in [other for other in self.decoders if other not in decoders]:
                yield partial(self.decode, placement, order, decoder, transfers)
        if self._memory_counts(candidates, margin) and self._lateness_helps(candidates):
            late = self._lateness.order(order)
            for decoder in self.decoders:
                yield partial(self.decode, placement, late, decoder)

    def _hurried(self, candidates: list[Candidate]) -> bool:
        """True if a candidate or the incumbent fits and there is no time to decode another."""
        if self._budget.affords_decoding():
            return False
        return self._incumbent.feasible or any(candidate.feasible for candidate in candidates)

    @cached_property
    def _instant_transfers(self) -> bool:
        """True if transfers are blocking and some take no time."""
        return self._problem.transfers == "blocking" and bool(instant(self._problem).any())

    def _sent_together(self, candidates: list[Candidate], order: Order) -> Candidate:
        """The decision with instant transfers joined to others, so that devices stop less often.

        If `order` is not topological, the order of the best candidate's schedule replaces it.
        """
        best = min(candidates, key=lambda candidate: candidate.score)
        if not is_topological(self._problem, order):
            order = order_of(self._problem, best.schedule)
        sent = _core.simulation.blocking_transfers(self.simulator.core, best.placement, order)
        return self.decode(best.placement, order, "serial", TransferOrder(*sent))

    def _memory_counts(self, candidates: list[Candidate], margin: float) -> bool:
        """True if a candidate like these could become the incumbent with fewer live bytes."""
        by_memory = self._problem.objective == "memory"
        if self._problem.rules.memory == "persistent" or "calls" in self.decoders:
            return False
        least = min(candidates, key=lambda candidate: candidate.score)
        if not least.excess and not by_memory:
            return False
        best = self._incumbent.candidate
        if best is None or not best.feasible:
            return True
        return least.value < best.value * (NEAR_BEST_PEAK if by_memory else 1.0) + margin

    def _lateness_helps(self, candidates: list[Candidate]) -> bool:
        """True if late ops could make a candidate the incumbent. They save at most
        `Lateness.size` bytes."""
        size, least = self._lateness.size, min(candidates, key=lambda candidate: candidate.score)
        if size <= NEGLIGIBLE_PEAK_SHARE * least.schedule.peak.max():
            return False
        best = self._incumbent.candidate
        if best is None:
            return True
        # Except for memory, a lighter plan may have any value.
        value = least.value - size if self._problem.objective == "memory" else -np.inf
        return (max(0, least.excess - size), value) < best.score

    @cached_property
    def _lateness(self) -> Lateness:
        return Lateness(self._problem, self.simulator.core)

    def _value(self, schedule: Schedule) -> float:
        if self._problem.objective == "memory":
            return float(schedule.peak.max())
        if self._problem.objective == "throughput":
            return schedule.period(self._problem)
        return schedule.makespan
