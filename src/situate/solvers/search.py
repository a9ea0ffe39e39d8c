"""One run of a solver: its budget, its clock, and the best decision so far."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from situate import _core
from situate.bounds.rounding import gap
from situate.data.arrays import Order, Placement
from situate.data.placements import Restrictions
from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.host.machine import usable_cpus
from situate.results.result import Asynchrony, Knowledge, Overtime, Progress, WorkerProgress
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
from situate.solvers.late import Lateness
from situate.solvers.learned.learner import Learning

OFFERS_REMEMBERED = 9
"""Number of recent offers whose median time predicts the next one."""

NEAR_BEST_PEAK = 1.25
"""If a plan's peak exceeds the best by more than this factor, no other decoder is tried."""

NEGLIGIBLE_PEAK_SHARE = 1e-3
"""Least share of the largest peak that a late order must be able to save."""


LIMIT_AT_LEAST = 0.25
"""Least time limit in seconds that `auto` enforces, so that small graphs get all simple rules."""

OutOfTime = _core.search.OutOfTime
"""Raised when the time limit is over and the search has a plan."""

DECODINGS_TO_FIT = 32
"""While nothing fits, a search may last as long as this many decodings, whatever its limit."""

WORK_MARGIN = 1.5
"""Safety factor on the expected seconds of work that begins near an enforced limit."""

OVERTIME_SHARE = 0.02
"""Share of a search's time that may pass after its limit without a notice of overtime."""


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


class Search:
    """Keeps the best decision offered, the budget and the history.

    Args:
        problem: the problem to solve.
        lower_bound: on the objective; the search may stop when it meets the bound.
        bounded_by: the name of that bound.
        time_limit: wall seconds, or None.
        evaluations: number of decisions to evaluate, or None. With a limit of evaluations alone
            the result depends only on the seed.
        seed, threads, on_progress: as in `solve`.
        begin: value of `time.perf_counter` when the time began; None for now.
        learning: options of a method that learns.
        keeps_limit: if True, work that the time limit does not allow raises `OutOfTime` once
            there is a plan.

    Attributes:
        measurements: batches of measurements that a method has learnt from.
        measured_best: measured seconds of the best decision; None if it was not measured.
        asynchrony: returns the progress of several controllers; None for other methods.
        knows: the method's knowledge of the machine; None if unknown.
        workers: returns the progress of the workers that measure, if there are any.
        reserve: share of the budget that `reserving` holds back.
        second_order: the order of `trying`; None outside it.
        interrupted: True if Ctrl-C ended the search.
    """

    def __init__(
        self,
        problem: Problem,
        lower_bound: float = 0.0,
        *,
        time_limit: float | None = None,
        evaluations: int | None = None,
        seed: int = 0,
        threads: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        begin: float | None = None,
        learning: Learning | None = None,
        bounded_by: str = "",
        keeps_limit: bool = False,
    ) -> None:
        self._begin = time.perf_counter() if begin is None else begin
        self.problem = problem
        self.simulator = Simulator(problem)
        self._restrictions = Restrictions(problem, problem.runnable)
        self.lower_bound = lower_bound
        self.bounded_by = bounded_by
        self.time_limit = time_limit
        self.evaluation_limit = evaluations
        self.seed = seed
        self.threads = threads or usable_cpus()
        self.learning = learning or Learning()
        self.reserve = 0.0
        self.second_order: Order | None = None
        self.interrupted = False
        self.keeps_limit = keeps_limit
        self._first_plan_late = False
        self.evaluations = 0
        self.best: Candidate | None = None
        self.history: list[tuple[float, int, float]] = []
        self.measurements: list[Measurements] = []
        self.measured_best: float | None = None
        self.asynchrony: Callable[[], Asynchrony | None] = lambda: None
        self.knows: Knowledge | None = None
        self.workers: Callable[[], WorkerProgress | None] = lambda: None
        self._on_progress = on_progress
        self._took: deque[float] = deque(maxlen=OFFERS_REMEMBERED)
        self._decoding_seconds = 0.0  # of the last decoding

    def beside(self, evaluations: int) -> Search:
        """Another search of the same problem, on the clock of this one."""
        return Search(
            self.problem,
            self.lower_bound,
            time_limit=self.time_limit,
            evaluations=evaluations,
            seed=self.seed,
            threads=self.threads,
            begin=self._begin,
        )

    def for_time(self, share: float) -> Search:
        """A search for the shortest single step, in a share of the remaining budget."""
        seconds, evaluations = self.time_limit, self.evaluation_limit
        if seconds is not None:
            now = self.seconds
            # Both searches share one clock, so the limit counts from the same beginning.
            seconds = now + share * max(0.0, seconds * (1 - self.reserve) - now)
        if evaluations is not None:
            remaining = evaluations * (1 - self.reserve) - self.evaluations
            evaluations = max(1, int(share * remaining))
        return Search(
            replace(self.problem, objective="time"),
            self.lower_bound,
            time_limit=seconds,
            evaluations=evaluations,
            seed=self.seed,
            threads=self.threads,
            on_progress=lambda _: self.report(),
            begin=self._begin,
            keeps_limit=self.keeps_limit,
        )

    @property
    def incumbent(self) -> Candidate:
        """The best decision so far, once there is one."""
        assert self.best is not None, "nothing was offered"
        return self.best

    @contextmanager
    def reserving(self, share: float) -> Iterator[None]:
        """Hold back this share of the budget for work after the block."""
        before, self.reserve = self.reserve, share
        try:
            yield
        finally:
            self.reserve = before

    @contextmanager
    def trying(self, order: Order | None) -> Iterator[None]:
        """Also decode every placement offered within the block in this order."""
        before, self.second_order = self.second_order, order
        try:
            yield
        finally:
            self.second_order = before

    @property
    def seconds(self) -> float:
        """Wall seconds since the search began."""
        return time.perf_counter() - self._begin

    @property
    def decoders(self) -> tuple[DecoderName, ...]:
        """The decoders that apply to this problem and objective."""
        return decoders_for(self.problem, self.problem.objective)

    def budget_left(self) -> float:
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

    def finished(self) -> bool:
        """True if the budget is spent, the remaining time is too short for another offer, or the
        plan meets the bound."""
        return self.budget_left() <= 0 or not self.affords(1) or self.proved()

    def seconds_left(self) -> float:
        """Seconds available to work that cannot stop halfway; infinite before the first plan and
        for searches that enforce no limit."""
        return np.inf if self.best is None else self._seconds_to_end(self.best.feasible)

    def _seconds_to_end(self, fits: bool) -> float:
        """Seconds until the search ends.

        Args:
            fits: True if a plan fits; otherwise the search may run longer.
        """
        if self.time_limit is None or not self.keeps_limit:
            return np.inf
        end = max(self.time_limit, LIMIT_AT_LEAST)
        if not fits:
            end = max(end, DECODINGS_TO_FIT * self._decoding_seconds)
        return end - self.seconds

    def keep_to_limit(self, seconds: float = 0.0) -> None:
        """
        Args:
            seconds: expected duration of the work ahead, where it exceeds a decoding's.

        Raises:
            OutOfTime: there is a plan, and no time for that work.
        """
        if self.seconds_left() < WORK_MARGIN * max(self._decoding_seconds, seconds):
            raise OutOfTime("the time limit is over")

    @property
    def overtime(self) -> Overtime | None:
        """The reason why the search exceeded a time limit that it enforces; None if it did not."""
        if self.best is None or self._seconds_to_end(True) >= -OVERTIME_SHARE * self.seconds:
            return None
        if self.best.feasible:
            return "first plan" if self._first_plan_late else None
        return "no plan"

    def record_seconds(self, seconds: float) -> None:
        """Record the duration of an offer, or of a batch of a method that learns."""
        self._took.append(seconds)

    def affords(self, offers: float) -> bool:
        """True if the remaining time is enough for work as long as so many offers.

        An offer cannot stop halfway. Work is measured in offers so that a time limit holds on any
        machine and any graph.
        """
        if self.time_limit is None or not self._took:
            return True
        expected = offers * self.offer_seconds()
        return self.seconds + expected <= self.time_limit * (1 - self.reserve)

    def offer_seconds(self) -> float:
        """Expected seconds of an offer; 0 before the first one."""
        # A median ignores single offers that other work on the machine slows down.
        return sorted(self._took)[len(self._took) // 2] if self._took else 0.0

    def evaluated(self) -> bool:
        """True if the limit of evaluations is spent."""
        return self.evaluation_limit is not None and self.evaluations >= self.evaluation_limit

    def proved(self) -> bool:
        """True if the best decision is feasible and meets the bound."""
        best = self.best
        if best is None or not best.feasible:
            return False
        return gap(self.problem, best.value, self.lower_bound) <= 0

    def raise_bound(self, bound: float, name: str) -> None:
        """Adopt a lower bound on the objective, with its name, if it is tighter than the current
        one."""
        if bound > self.lower_bound:
            self.lower_bound, self.bounded_by = bound, name

    def offer(
        self,
        placement: Placement,
        order: Order,
        decoders: Sequence[DecoderName] | None = None,
        ties: bool = False,
        transfers: TransferOrder | None = None,
    ) -> Candidate:
        """Decode a decision and return the best candidate.

        The candidate becomes the incumbent if it is better, or with `ties` as good. If memory
        counts, the decision is decoded in more ways, see `_decoded`.
        """
        self.keep_to_limit(self.offer_seconds())
        begin = self.seconds
        placement = self._checked(placement)
        best = self._decoded(placement, order, decoders or self.decoders, transfers=transfers)
        self.record_seconds(self.seconds - begin)
        if self.best is None or best.score < self.best.score:
            first = best.feasible and not (self.best and self.best.feasible)
            self._first_plan_late |= first and self._seconds_to_end(True) < 0
            self.history.append((self.seconds, self.evaluations, best.value))
            self.best = best
        elif ties and best.score == self.best.score:
            self.best = best
        if self.second_order is not None and order is not self.second_order:
            self.keep_to_limit()
            self.consider(placement, self.second_order, "eager")
        self.report()
        return best

    def consider(self, placement: Placement, order: Order, decoder: DecoderName) -> int:
        """Offer a decision if its estimate beats the incumbent; return its excess bytes.

        An estimate costs less than an offer, which makes a schedule.
        """
        # The simulator scores times and peaks without a schedule; periods and calls need one.
        can_estimate = self.problem.objective != "throughput" and decoder != "calls"
        if can_estimate and self.best is not None:
            estimated = self.estimate(placement, order, decoder)
            if estimated >= self.best.score:
                return estimated[0]
        return self.offer(placement, order, [decoder]).excess

    def estimate(
        self, placement: Placement, order: Order, decoder: DecoderName
    ) -> tuple[int, float]:
        """The score of a decision for time or memory, without a schedule."""
        assert decoder != "calls", "the simulator has no calls"
        self.keep_to_limit()
        self.evaluations += 1
        priority = priority_of(order)[None]
        [seconds], [peak] = self.simulator.evaluate(
            placement[None], priority, decoder=decoder, threads=1
        )
        excess = sum(np.maximum(0, peak - self.problem.capacity).tolist())
        by_time = self.problem.objective == "time"
        return excess, float(seconds if by_time else peak.max())

    def prefer(self, placements: Sequence[Placement], order: Order, margin: float) -> None:
        """Make the best of these the incumbent if it fits and is at most `margin` worse than it."""
        first = self.decoders[:1]
        valid = map(self._checked, placements)
        candidates = [self._decoded(placement, order, first, margin) for placement in valid]
        best = min(candidates, key=lambda candidate: candidate.score, default=None)
        if best and self.best and best.feasible and best.value <= self.best.value + margin:
            self.best = best

    def add_measurements(self, measurements: Measurements) -> None:
        """Count placements that an evaluator measured, and store copies of their measurements."""
        self.evaluations += len(measurements)
        # Learners and evaluators of the user's own may overwrite their arrays later.
        seconds, outcome = measurements.times(np.inf), measurements.outcome.copy()
        self.measurements.append(Measurements(seconds, outcome))

    def adopt(self, placement: Placement, order: Order, seconds: float) -> None:
        """Make a decision the incumbent because of its measured seconds. It counts as no
        evaluation, and its placement was checked when the learner proposed it."""
        self.measured_best = seconds
        self.best = self._decode(placement.copy(), order, self.decoders[0])
        self.history.append((self.seconds, self.evaluations, self.best.value))

    def report(self) -> None:
        """Report the progress to the caller."""
        if self._on_progress is not None:
            self._on_progress(self.progress())

    def progress(self) -> Progress:
        """The progress of the search."""
        value, feasible = (self.best.value, self.best.feasible) if self.best else (np.inf, False)
        return Progress(
            self.seconds,
            self.evaluations,
            value,
            feasible,
            self.lower_bound,
            self.workers(),
            self.asynchrony(),
        )

    def _decoded(
        self,
        placement: Placement,
        order: Order,
        decoders: Sequence[DecoderName],
        margin: float = 0.0,
        transfers: TransferOrder | None = None,
    ) -> Candidate:
        """The best candidate of a decision by these decoders.

        If memory is the objective or the only obstacle, all other decoders are tried too. Each is
        also tried with the order of `Lateness`. Candidates up to `margin` worse than the incumbent
        count as useful.
        """
        candidates = list[Candidate]()
        for way in self._ways(candidates, placement, order, decoders, margin, transfers):
            candidates.append(way())
            if self._hurried(candidates):
                break
        self.evaluations += len(candidates)
        return min(candidates, key=lambda candidate: candidate.score)

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
        for by in decoders:
            yield partial(self._decode, placement, order, by, transfers)
        if transfers is None and self._instant_transfers:
            yield partial(self._sent_together, candidates, order)
        if self._memory_counts(candidates, margin):
            # Peak memory differs between decoders, and only one of them may fit.
            for by in [by for by in self.decoders if by not in decoders]:
                yield partial(self._decode, placement, order, by, transfers)
        if self._memory_counts(candidates, margin) and self._lateness_helps(candidates):
            late = self._lateness.order(order)
            for by in self.decoders:
                yield partial(self._decode, placement, late, by)

    def _hurried(self, candidates: list[Candidate]) -> bool:
        """True if a candidate or the incumbent fits and there is no time to decode another."""
        if self._seconds_to_end(True) >= WORK_MARGIN * self._decoding_seconds:
            return False
        return any(
            candidate.feasible for candidate in [*candidates, *([self.best] if self.best else [])]
        )

    @cached_property
    def _instant_transfers(self) -> bool:
        """True if transfers are blocking and some take no time."""
        return self.problem.transfers == "blocking" and bool(instant(self.problem).any())

    def _sent_together(self, candidates: list[Candidate], order: Order) -> Candidate:
        """The decision with instant transfers joined to others, so that devices stop less often.

        If `order` is not topological, the order of the best candidate's schedule replaces it.
        """
        best = min(candidates, key=lambda candidate: candidate.score)
        if not is_topological(self.problem, order):
            order = order_of(self.problem, best.schedule)
        sent = _core.simulation.blocking_transfers(self.simulator.core, best.placement, order)
        return self._decode(best.placement, order, "serial", TransferOrder(*sent))

    def _memory_counts(self, candidates: list[Candidate], margin: float) -> bool:
        """True if a candidate like these could become the incumbent with fewer live bytes."""
        by_memory = self.problem.objective == "memory"
        if self.problem.rules.memory == "persistent" or "calls" in self.decoders:
            return False
        least = min(candidates, key=lambda candidate: candidate.score)
        if not least.excess and not by_memory:
            return False
        if self.best is None or not self.best.feasible:
            return True
        return least.value < self.best.value * (NEAR_BEST_PEAK if by_memory else 1.0) + margin

    def _lateness_helps(self, candidates: list[Candidate]) -> bool:
        """True if late ops could make a candidate the incumbent. They save at most
        `Lateness.size` bytes."""
        saved, least = self._lateness.size, min(candidates, key=lambda candidate: candidate.score)
        if saved <= NEGLIGIBLE_PEAK_SHARE * least.schedule.peak.max():
            return False
        if self.best is None:
            return True
        value = least.value - saved if self.problem.objective == "memory" else -np.inf
        return (max(0, least.excess - saved), value) < self.best.score

    @cached_property
    def _lateness(self) -> Lateness:
        return Lateness(self.problem, self.simulator.core)

    def _checked(self, placement: Placement) -> Placement:
        """A copy of a placement after its restrictions are checked."""
        checked: Placement
        [checked] = self._restrictions.check(placement[None], lambda _: "")
        return checked

    def _decode(
        self,
        placement: Placement,
        order: Order,
        decoder: DecoderName,
        transfers: TransferOrder | None = None,
    ) -> Candidate:
        begin = self.seconds
        schedule = scheduled(self.simulator, placement, order, decoder, transfers)
        self._decoding_seconds = self.seconds - begin
        excess, value = schedule.excess(self.problem), self._value(schedule)
        return Candidate(placement, order, decoder, schedule, value, excess, transfers)

    def _value(self, schedule: Schedule) -> float:
        if self.problem.objective == "memory":
            return float(schedule.peak.max())
        if self.problem.objective == "throughput":
            return schedule.period(self.problem)
        return schedule.makespan
