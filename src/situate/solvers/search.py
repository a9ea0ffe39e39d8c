"""One run of a solver: the object through which methods offer decisions within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.host.machine import usable_cpus
from situate.results.result import Knowledge, Overtime, Progress, Result
from situate.simulation.decoding import DecoderName
from situate.simulation.simulator import Simulator
from situate.simulation.transfer_order import TransferOrder
from situate.solvers.budget import WORK_MARGIN, Budget, OutOfTime
from situate.solvers.decoding import Decoding
from situate.solvers.incumbent import Candidate, Incumbent


@dataclass(frozen=True)
class MethodOptions:
    """Options of methods that do not learn; each takes those that its record in `METHODS` lists.

    Attributes:
        settings, weights, workers: see `Learning`.
    """

    settings: Literal["paper", "tuned"] = "tuned"
    weights: str | Path | None = None
    workers: int | str | None = None


class Search:
    """A problem with a budget, the best decision so far, and the way to offer others.

    Args:
        problem: the problem to solve.
        lower_bound: on the objective; the search may stop when it meets the bound.
        bounded_by: the name of that bound.
        budget: of the search; None for no limits.
        seed, threads, on_progress: as in `solve`.
        options: of the method; None for the defaults.

    Attributes:
        decoding: makes candidates of decisions.
        simulator: of the problem.
        second_order: the order of `trying`; None outside it.
    """

    def __init__(
        self,
        problem: Problem,
        lower_bound: float = 0.0,
        bounded_by: str = "",
        *,
        budget: Budget | None = None,
        seed: int = 0,
        threads: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        options: MethodOptions | None = None,
    ) -> None:
        self.problem = problem
        self.budget = budget or Budget()
        self.seed = seed
        self.threads = threads or usable_cpus()
        self.options = options or MethodOptions()
        self.second_order: Order | None = None
        self._incumbent = Incumbent(problem, lower_bound, bounded_by)
        self.decoding = Decoding(problem, self.budget, self._incumbent)
        self._on_progress = on_progress

    def for_time(self, share: float) -> Search:
        """A search for the shortest single step, in a share of the remaining budget."""
        return Search(
            replace(self.problem, objective="time"),
            self.lower_bound,
            budget=self.budget.part(share),
            seed=self.seed,
            threads=self.threads,
            # Its own progress would be of another objective.
            on_progress=lambda _: self.report(),
        )

    @property
    def simulator(self) -> Simulator:
        """The simulator of the problem."""
        return self.decoding.simulator

    @property
    def decoders(self) -> tuple[DecoderName, ...]:
        """The decoders that apply to this problem and objective."""
        return self.decoding.decoders

    @property
    def best(self) -> Candidate | None:
        """The best candidate so far; None before the first offer."""
        return self._incumbent.candidate

    @best.setter
    def best(self, candidate: Candidate | None) -> None:
        self._incumbent.candidate = candidate

    @property
    def incumbent(self) -> Candidate:
        """The best candidate so far, once there is one."""
        assert self.best is not None, "nothing was offered"
        return self.best

    @property
    def history(self) -> list[tuple[float, int, float]]:
        """(seconds, evaluations, value) at each improvement."""
        return self._incumbent.history

    @property
    def lower_bound(self) -> float:
        """Lower bound on the objective."""
        return self._incumbent.lower_bound

    @property
    def bounded_by(self) -> str:
        """Name of the lower bound."""
        return self._incumbent.bounded_by

    def raise_bound(self, bound: float, name: str) -> None:
        """Adopt a lower bound, with its name, if it is tighter than the current one."""
        self._incumbent.raise_bound(bound, name)

    def proved(self) -> bool:
        """True if the best decision is feasible and meets the bound."""
        return self._incumbent.proved()

    @contextmanager
    def trying(self, order: Order | None) -> Iterator[None]:
        """Also decode every placement offered within the block in this order."""
        before, self.second_order = self.second_order, order
        try:
            yield
        finally:
            self.second_order = before

    def finished(self) -> bool:
        """True if the budget is spent, the remaining time is too short for another offer, or the
        plan meets the bound."""
        return self.budget.remaining() <= 0 or not self.budget.affords(1) or self.proved()

    def seconds_left(self) -> float:
        """Seconds available to work that cannot stop halfway; infinite before the first plan and
        for searches that enforce no limit."""
        return np.inf if self.best is None else self.budget.seconds_to_end(self.best.feasible)

    def keep_to_limit(self, seconds: float = 0.0) -> None:
        """
        Args:
            seconds: expected duration of the work ahead, where it exceeds a decoding's.

        Raises:
            OutOfTime: there is a plan, and no time for that work.
        """
        if self.seconds_left() < WORK_MARGIN * max(self.budget.decoding_seconds, seconds):
            raise OutOfTime("the time limit is over")

    @property
    def overtime(self) -> Overtime | None:
        """The reason why the search exceeded a time limit that it enforces; None if it did not."""
        return None if self.best is None else self.budget.overtime(self.best.feasible)

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
        counts, the decision is decoded in more ways, see `Decoding.best`.

        Raises:
            OutOfTime: an enforced time limit leaves no time for an offer.
            SituateError: an op on a device that may not run it, or a group on several devices.
        """
        self.keep_to_limit(self.budget.offer_seconds())
        begin = self.budget.seconds
        candidate = self.decoding.best(
            placement, order, decoders or self.decoders, transfers=transfers
        )
        self.budget.record_offer(self.budget.seconds - begin)
        if self._incumbent.is_beaten_by(candidate):
            self._improve(candidate)
        elif ties and candidate.score == self.incumbent.score:
            self.best = candidate
        if self.second_order is not None and order is not self.second_order:
            # The first order may have taken the time that was left.
            self.keep_to_limit()
            self.consider(candidate.placement, self.second_order, "eager")
        self.report()
        return candidate

    def _improve(self, candidate: Candidate) -> None:
        budget, first = self.budget, candidate.feasible and not self._incumbent.feasible
        # Only a late first plan explains overtime; later improvements do not.
        budget.first_plan_late |= first and budget.seconds_to_end(True) < 0
        self._incumbent.replace(candidate, budget.seconds, budget.evaluations)

    def consider(self, placement: Placement, order: Order, decoder: DecoderName) -> int:
        """Offer a decision if its estimate beats the incumbent; return its excess bytes.

        An estimate costs less than an offer, which makes a schedule.
        """
        if self.best is not None and self.decoding.can_estimate(decoder):
            score = self.estimate(placement, order, decoder)
            # An equal plan would cost a decoding and change nothing.
            if score >= self.best.score:
                return score[0]
        return self.offer(placement, order, [decoder]).excess

    def estimate(
        self, placement: Placement, order: Order, decoder: DecoderName
    ) -> tuple[int, float]:
        """The score of a decision for time or memory, without a schedule."""
        self.keep_to_limit()
        return self.decoding.estimate(placement, order, decoder)

    def prefer(self, placements: Sequence[Placement], order: Order, margin: float) -> None:
        """Make the best of these the incumbent if it fits and is at most `margin` worse than it."""
        first = self.decoders[:1]
        candidates = [
            self.decoding.best(placement, order, first, margin) for placement in placements
        ]
        best = min(candidates, key=lambda candidate: candidate.score, default=None)
        if best and self.best and best.feasible and best.value <= self.best.value + margin:
            self.best = best

    def adopt(self, placement: Placement, order: Order) -> None:
        """Make a decision the incumbent whatever its score, such as one with measured seconds.

        It counts as no evaluation, and its placement was checked when the learner proposed it.
        """
        candidate = self.decoding.decode(placement.copy(), order, self.decoders[0])
        self._incumbent.replace(candidate, self.budget.seconds, self.budget.evaluations)

    def report(self) -> None:
        """Report the progress to the caller."""
        if self._on_progress is not None:
            self._on_progress(self.progress())

    def progress(self) -> Progress:
        """The progress of the search."""
        value, feasible = (self.best.value, self.best.feasible) if self.best else (np.inf, False)
        return Progress(
            self.budget.seconds, self.budget.evaluations, value, feasible, self.lower_bound
        )

    def result(self, method: str, knows: Knowledge | None = None) -> Result:
        """The best decision, with its history.

        Args:
            method: name of the method that searched.
            knows: its knowledge of the machine; None if unknown.

        Raises:
            SituateError: the search found no plan.
        """
        best = self.best
        if best is None:
            raise SituateError(f"method {method!r} found no plan")
        return Result(
            problem=self.problem,
            method=method,
            decoder=best.decoder,
            placement=best.placement,
            order=best.order,
            schedule=best.schedule,
            value=best.value,
            lower_bound=self.lower_bound if best.feasible else None,
            bounded_by=self.bounded_by if best.feasible else None,
            feasible=best.feasible,
            evaluations=self.budget.evaluations,
            seconds=self.budget.seconds,
            seed=self.seed,
            history=tuple(self.history),
            transfers=best.transfers,
            knows=knows,
            interrupted=self.budget.interrupted,
            overtime=self.overtime,
        )
