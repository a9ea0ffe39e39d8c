"""Islands: searches in worker processes that periodically restart from the best plan of all (the
island model of evolutionary computation, with a single migrant)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.evaluators.workers.jobs import Function, Jobs
from situate.evaluators.workers.places import Place
from situate.evaluators.workers.workers import NoWorkers, Terms
from situate.simulation.transfer_order import TransferOrder
from situate.solvers.budget import Budget
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

ROUNDS = (0.5, 0.25, 0.25)
"""Shares of the remaining budget per round; islands exchange their best plan after each."""

ISLANDS = 4
"""Islands of a search that is limited by evaluations alone, whatever its workers."""

STARTING_SHARE = 0.2
"""Share of the remaining time within which workers must be ready to take part."""

LATE_SHARE, LATE_SECONDS = 0.5, 1.0
"""An island may end late by this share of its seconds plus this many seconds."""

Improve = Callable[[Search, bool, bool], None]
"""Improves the best plan of a search until its budget ends; see `auto.improve`."""


@dataclass(frozen=True, eq=False)
class Decision:
    """A decision in the form that workers receive; see `Candidate`."""

    placement: Placement
    order: Order
    transfers: TransferOrder | None

    @classmethod
    def of(cls, candidate: Candidate) -> Decision:
        """The decision of a candidate."""
        return cls(candidate.placement, candidate.order, candidate.transfers)

    def offer(self, search: Search) -> None:
        """Offer the decision to a search."""
        search.offer(self.placement, self.order, transfers=self.transfers)


@dataclass(frozen=True)
class Share:
    """The budget of an island in a round; see `Search`."""

    seconds: float | None
    evaluations: int | None
    seed: int


def improved(
    problem: Problem,
    lower_bound: float,
    improve: Function,
    share: Share,
    start: Decision,
    first: bool,
    full: bool,
) -> tuple[Decision, int]:
    """(best decision from `start` within a share of the budget, number of evaluations)."""
    search = Search(
        problem,
        lower_bound,
        budget=Budget(time_limit=share.seconds, evaluation_limit=share.evaluations),
        seed=share.seed,
        threads=1,
    )
    start.offer(search)
    if not search.finished():
        improve(search, first, full)
    return Decision.of(search.incumbent), search.budget.evaluations


class Islands:
    """The islands of a search.

    Args:
        improve: the improvement on each island.
        jobs: of `improved`.

    Attributes:
        left_out: number of calls of `improved` that were dropped after failures of workers.
    """

    def __init__(self, search: Search, improve: Function, jobs: Jobs) -> None:
        self._search, self._improve, self._jobs = search, improve, jobs
        self.left_out = 0

    def start(self) -> None:
        """Start the workers in the background, while this process constructs plans."""
        self._jobs.ready(0.0)

    def improve(self, full: bool) -> bool:
        """Improve the best plan until the budget ends; False if no worker is ready in time, or all
        are lost.

        Args:
            full: see `auto.improve`.
        """
        try:
            for number in range(len(ROUNDS)):
                if self._search.finished():
                    break
                count = self._count(number)
                if not count:
                    return False
                self._round(number, count, full)
        except NoWorkers as error:
            _warn_of_none(error)
            return self._search.finished()
        return True

    def _count(self, number: int) -> int:
        """Number of islands: one per ready worker, but fixed with a limit of evaluations alone, so
        that the result does not depend on the workers."""
        limit = self._search.budget.time_limit
        if limit is None:
            return ISLANDS
        share = STARTING_SHARE if number == 0 else 0.0
        return self._jobs.ready(share * self._search.budget.remaining() * limit)

    def _round(self, number: int, count: int, full: bool) -> None:
        search = self._search
        start = Decision.of(search.incumbent)
        # A share of the budget that earlier rounds left.
        share = ROUNDS[number] / sum(ROUNDS[number:])
        calls = [
            (self._improve, self._share(share, number, island, count), start, number == 0, full)
            for island in range(count)
        ]
        for result in self._results(calls, self._terms(calls[0][1])):
            if result is not None:
                decision, evaluations = result
                search.budget.evaluations += evaluations
                decision.offer(search)

    def _results(self, calls: list[Any], terms: Terms) -> Iterator[tuple[Decision, int] | None]:
        """The results of all islands; None for one that is left out.

        If all workers are lost and evaluations alone are limited, this process searches instead.
        """
        count = 0
        try:
            for result in self._jobs.map(calls, terms):
                count += 1
                yield result
        except NoWorkers as error:
            if self._search.budget.time_limit is not None:
                raise
            _warn_of_none(error)
            self._jobs = self._jobs.here()
            # Results come in the order of the calls, so the first `count` calls are complete.
            yield from self._jobs.map(calls[count:])

    def _terms(self, share: Share) -> Terms:
        """The terms of a round. With a time limit no island is repeated, because a repetition would
        take as long again."""
        if share.seconds is None:
            return Terms(lost=self._leave_out)
        limit = (1 + LATE_SHARE) * share.seconds + LATE_SECONDS
        return Terms(limit=limit, tries=1, lost=self._leave_out)

    def _leave_out(self, reason: str) -> None:
        self.left_out += 1

    def _share(self, share: float, number: int, island: int, count: int) -> Share:
        search = self._search
        seconds = evaluations = None
        if search.budget.time_limit is not None:
            budget = search.budget.time_limit * (1 - search.budget.reserve) - search.budget.seconds
            # This process offers the results of all islands in turn, which takes time too.
            seconds = max(0.0, share * budget - count * search.budget.offer_seconds())
        if search.budget.evaluation_limit is not None:
            budget = (
                search.budget.evaluation_limit * (1 - search.budget.reserve)
                - search.budget.evaluations
            )
            # An offer of the island's result takes an evaluation per decoder.
            evaluations = max(1, int(share * budget / count) - len(search.decoders))
        # Independent draws for every island of every round, whichever worker runs it.
        words = np.random.SeedSequence(search.seed, spawn_key=(number, island)).generate_state(1)
        return Share(seconds, evaluations, int(words[0]))


@contextmanager
def islands(search: Search, improve: Improve) -> Iterator[Islands | None]:
    """The islands of a search with workers; None without workers.

    Raises:
        SituateError: see `Place.jobs`.
    """
    workers = search.options.workers
    if workers is None:
        yield None
        return
    function = Function.of(improve, ())
    shared = (search.problem, search.lower_bound)
    with Place.parse(workers).jobs(improved, shared=shared, alike=True) as jobs:
        group = Islands(search, function, jobs)
        yield group
        then = (
            f"islands left out of a round: {group.left_out}"
            if group.left_out
            else "no island was lost"
        )
        if failures := jobs.counts.failures_text(then):
            warnings.warn(failures, stacklevel=2)


def _warn_of_none(error: NoWorkers) -> None:
    warnings.warn(f"auto goes on in this process alone ({error})", stacklevel=2)
