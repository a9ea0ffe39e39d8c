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
"""Offers whose median time is what the next one is expected to take."""

NEAR_BEST_PEAK = 1.25
"""Factor over the best peak above which no other decoder makes a plan the better one."""

NEGLIGIBLE_PEAK_SHARE = 1e-3
"""Share of the largest peak below which bytes saved are not worth another order."""


LIMIT_AT_LEAST = 0.25
"""Seconds below which `auto` keeps no time limit: all simple rules are tried on small graphs."""

OutOfTime = _core.OutOfTime
"""Ends a search that has a plan, when its time limit is over."""

DECODINGS_TO_FIT = 16
"""Decodings that a search may take as long as while nothing fits, however short its limit."""

OVERTIME_SHARE = 0.02
"""Part of a search's time that it may have gone on after its limit unnoticed."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A decision, its schedule and its score: excess bytes first, then the objective. Without
    `transfers` each transfer is as urgent as its most urgent consumer."""

    placement: Placement
    order: Order
    decoder: DecoderName
    schedule: Schedule
    value: float
    excess: int
    transfers: TransferOrder | None = None

    @property
    def feasible(self) -> bool:
        """True where it fits in memory and the step ends."""
        return self.excess == 0 and bool(np.isfinite(self.value))

    @property
    def score(self) -> tuple[int, float]:
        """The smaller, the better."""
        return self.excess, self.value


class Search:
    """Keeps the best decision offered, the budget and the history.

    Args:
        problem: what is solved.
        lower_bound: no value is smaller; the search may stop there.
        bounded_by: the name of that bound.
        time_limit: wall seconds, or None.
        evaluations: decisions to look at, or None. With a limit of evaluations alone the result
            depends on the seed only.
        seed, threads, on_progress: as in `solve`.
        begin: what `time.perf_counter` said when the time began; None for now.
        learning: how a method that learns goes about it.
        keeps_limit: once there is a plan, work that the time limit does not allow raises
            `OutOfTime`.

    Attributes:
        measurements: batch by batch, what a method that learns was told.
        measured_best: seconds that the best decision took where it was measured; else None.
        asynchrony: says how several controllers do so far; None of others.
        knows: what the method is told of the machine; None where that is not known.
        workers: gives the progress of the workers that measure, if there are any.
        reserve: the share of the budget that `reserving` keeps.
        second_order: the order of `trying`; None outside.
        interrupted: whether Ctrl-C ended it.
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
        """Another search of the same problem, in the time of this one."""
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
        """Another search, for the shortest single step, in a share of what is left of this one's
        budget."""
        seconds, evaluations = self.time_limit, self.evaluation_limit
        if seconds is not None:
            now = self.seconds
            # The other search has the clock of this one: its limit counts from the same beginning.
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
        """Keep this share of the budget for what comes after the block."""
        before, self.reserve = self.reserve, share
        try:
            yield
        finally:
            self.reserve = before

    @contextmanager
    def trying(self, order: Order | None) -> Iterator[None]:
        """Try every placement that is offered within the block in this order as well."""
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
        """The decoders that may make a schedule of this problem."""
        return decoders_for(self.problem, self.problem.objective)

    def budget_left(self) -> float:
        """The fraction of the budget that is left, between 0 and 1."""
        fractions = [1.0]
        if self.time_limit is not None:
            # What is reserved counts as spent.
            limit = self.time_limit * (1 - self.reserve)
            fractions.append(1 - self.seconds / limit if limit > 0 else 0.0)
        if self.evaluation_limit is not None:
            most = self.evaluation_limit * (1 - self.reserve)
            fractions.append(1 - self.evaluations / most if most > 0 else 0.0)
        return max(0.0, min(fractions))

    def finished(self) -> bool:
        """True where the budget is spent, what is left of the time is not enough for another offer,
        or the bound is met."""
        return self.budget_left() <= 0 or not self.affords(1) or self.proved()

    def seconds_left(self) -> float:
        """Seconds that work may take which cannot be ended halfway: endless before the first plan,
        and where the search keeps no limit."""
        return np.inf if self.best is None else self._seconds_to_end(self.best.feasible)

    def _seconds_to_end(self, fits: bool) -> float:
        """Seconds until the search ends, where a plan fits or none does yet."""
        if self.time_limit is None or not self.keeps_limit:
            return np.inf
        end = max(self.time_limit, LIMIT_AT_LEAST)
        if not fits:
            end = max(end, DECODINGS_TO_FIT * self._decoding_seconds)
        return end - self.seconds

    def keep_to_limit(self) -> None:
        """Raise `OutOfTime` where there is a plan, and no time to decode another one."""
        if self.seconds_left() < self._decoding_seconds:
            raise OutOfTime("the time limit is over")

    @property
    def overtime(self) -> Overtime | None:
        """The reason why a search that keeps its time limit ended after it."""
        if self.best is None or self._seconds_to_end(True) >= -OVERTIME_SHARE * self.seconds:
            return None
        if self.best.feasible:
            return "first plan" if self._first_plan_late else None
        return "no plan"

    def record_seconds(self, seconds: float) -> None:
        """Remember what an offer, or a batch of a method that learns, took."""
        self._took.append(seconds)

    def affords(self, offers: float) -> bool:
        """True where the time left is enough for work that takes as long as so many offers.

        Offers are the unit of work that cannot be ended halfway, so that a time limit holds on any
        machine and any graph.
        """
        if self.time_limit is None or not self._took:
            return True
        expected = offers * self.offer_seconds()
        return self.seconds + expected <= self.time_limit * (1 - self.reserve)

    def offer_seconds(self) -> float:
        """Expected seconds of an offer; 0 where none was made."""
        # A median, for one offer of many is held up by whatever else the machine does.
        return sorted(self._took)[len(self._took) // 2] if self._took else 0.0

    def evaluated(self) -> bool:
        """True where a limit of evaluations is spent."""
        return self.evaluation_limit is not None and self.evaluations >= self.evaluation_limit

    def proved(self) -> bool:
        """True where the best decision is feasible and as good as the bound."""
        best = self.best
        if best is None or not best.feasible:
            return False
        return gap(self.problem, best.value, self.lower_bound) <= 0

    def raise_bound(self, bound: float, name: str) -> None:
        """Take another lower bound on the objective, of this name, where it is larger than the one
        known."""
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
        """Decode a decision by each decoder and return the best of them; keep it if it is better
        than all before it, or with `ties` as good. Where memory counts it is decoded in other
        ways too, see `_decoded`."""
        self.keep_to_limit()
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
        """Offer a decision if it is better than the best, for a worse one costs little; the bytes
        by which it is over the limits."""
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
        """Take the best of these if it fits and is worse than what is known by `margin` at most."""
        first = self.decoders[:1]
        valid = map(self._checked, placements)
        candidates = [self._decoded(placement, order, first, margin) for placement in valid]
        best = min(candidates, key=lambda candidate: candidate.score, default=None)
        if best and self.best and best.feasible and best.value <= self.best.value + margin:
            self.best = best

    def add_measurements(self, measurements: Measurements) -> None:
        """Count placements that an evaluator measured, and keep what nobody else may write into."""
        self.evaluations += len(measurements)
        # Copies: learners and evaluators of the user's own may write into their arrays later.
        seconds, outcome = measurements.times(np.inf), measurements.outcome.copy()
        self.measurements.append(Measurements(seconds, outcome))

    def adopt(self, placement: Placement, order: Order, seconds: float) -> None:
        """Make a decision the best, for it was measured to take so long; uncounted. Its placement
        was checked as the learner answered it."""
        self.measured_best = seconds
        self.best = self._decode(placement.copy(), order, self.decoders[0])
        self.history.append((self.seconds, self.evaluations, self.best.value))

    def report(self) -> None:
        """Tell how far the search is."""
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
        """The best of a decision by these decoders.

        Where only its memory is in the way, or memory is what is sought, also by all others, and
        by each in the order in which what depends on weights alone is late. A plan that is worse
        than the best by `margin` at most may be wanted too.
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
        """Decodings of a decision, one after the other, that those `candidates` so far ask for."""
        for by in decoders:
            yield partial(self._decode, placement, order, by, transfers)
        if transfers is None and self._instant_transfers:
            yield partial(self._sent_together, candidates, order)
        if self._memory_counts(candidates, margin):
            # Memory in use differs between decoders, and only one of them may fit.
            for by in [by for by in self.decoders if by not in decoders]:
                yield partial(self._decode, placement, order, by, transfers)
        if self._memory_counts(candidates, margin) and self._lateness_helps(candidates):
            late = self._lateness.order(order)
            for by in self.decoders:
                yield partial(self._decode, placement, late, by)

    def _hurried(self, candidates: list[Candidate]) -> bool:
        """True where one of these or the best plan fits, and there is no time to decode another."""
        if self._seconds_to_end(True) >= self._decoding_seconds:
            return False
        return any(
            candidate.feasible for candidate in [*candidates, *([self.best] if self.best else [])]
        )

    @cached_property
    def _instant_transfers(self) -> bool:
        """True where transfers are blocking, and some take no time."""
        return self.problem.transfers == "blocking" and bool(instant(self.problem).any())

    def _sent_together(self, candidates: list[Candidate], order: Order) -> Candidate:
        """The decision with transfers that take no time sent with others, so that devices stop for
        fewer; in the order of the best schedule found where its own is no topological one."""
        best = min(candidates, key=lambda candidate: candidate.score)
        if not is_topological(self.problem, order):
            order = order_of(self.problem, best.schedule)
        sent = _core.blocking_transfers(self.simulator.core, best.placement, order)
        return self._decode(best.placement, order, "serial", TransferOrder(*sent))

    def _memory_counts(self, candidates: list[Candidate], margin: float) -> bool:
        """True where a decision like these may become the best if it holds fewer bytes."""
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
        """True where late ops may make these better than the best: they save at most the bytes that
        ops which depend on weights alone make."""
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
        """A copy of a placement that runs where it may."""
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
