"""Islands: searches in the processes of workers, which every so often go on from the best of all
(the island model of evolutionary computation, with a single migrant)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.evaluators.workers.jobs import Function, Jobs
from situate.evaluators.workers.places import Place
from situate.simulation.transfer_order import TransferOrder
from situate.solvers.search import Found, Search

ROUNDS = (0.5, 0.25, 0.25)
"""Shares of what is left of the budget after which islands exchange their best."""

ISLANDS = 4
"""Islands of a search that is limited by evaluations alone: as many on any number of workers."""

STARTING_SHARE = 0.2
"""Share of what is left of the time in which workers must be ready to take part."""

Improve = Callable[[Search, bool, bool], None]
"""Improves the best plan of a search until its budget ends; see `on_island` of `auto`."""


@dataclass(frozen=True, eq=False)
class Decision:
    """A decision as it is sent; see `Found`."""

    placement: Placement
    order: Order
    transfers: TransferOrder | None

    @classmethod
    def of(cls, found: Found) -> Decision:
        """That of a plan."""
        return cls(found.placement, found.order, found.transfers)

    def offer(self, search: Search) -> None:
        """Offer it."""
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
    """The best decision that a share of the budget finds from `start`, and its evaluations."""
    search = Search(
        problem,
        lower_bound,
        time_limit=share.seconds,
        evaluations=share.evaluations,
        seed=share.seed,
        threads=1,
    )
    start.offer(search)
    if not search.finished():
        improve(search, first, full)
    return Decision.of(search.incumbent), search.evaluations


class Islands:
    """The islands of a search.

    Args:
        improve: what each does.
        jobs: of `improved`.
    """

    def __init__(self, search: Search, improve: Function, jobs: Jobs) -> None:
        self._search, self._improve, self._jobs = search, improve, jobs

    def start(self) -> None:
        """Start the workers, which takes as long as it does, while plans are constructed here."""
        self._jobs.ready(0.0)

    def improve(self, full: bool) -> bool:
        """Improve the best plan until the budget ends; False where no worker is ready in time.

        Args:
            full: see `on_island`.
        """
        count = self._count()
        for number in range(len(ROUNDS)):
            if not count or self._search.finished():
                break
            self._round(number, count, full)
        return count > 0

    def _count(self) -> int:
        """One a worker; with a limit of evaluations alone the workers must not decide."""
        limit = self._search.time_limit
        if limit is None:
            return ISLANDS
        return self._jobs.ready(STARTING_SHARE * self._search.left() * limit)

    def _round(self, number: int, count: int, full: bool) -> None:
        search = self._search
        start = Decision.of(search.incumbent)
        share = ROUNDS[number] / sum(ROUNDS[number:])
        calls = [
            (self._improve, self._share(share, number, island, count), start, number == 0, full)
            for island in range(count)
        ]
        for found, evaluations in self._jobs.map(calls):
            search.evaluations += evaluations
            found.offer(search)

    def _share(self, share: float, number: int, island: int, count: int) -> Share:
        search = self._search
        seconds = evaluations = None
        if search.time_limit is not None:
            left = search.time_limit * (1 - search.reserve) - search.seconds
            # What each finds is offered here, one after the other.
            seconds = max(0.0, share * left - count * search.offer_seconds())
        if search.evaluation_limit is not None:
            left = search.evaluation_limit * (1 - search.reserve) - search.evaluations
            evaluations = max(1, int(share * left / count) - len(search.decoders))
        words = np.random.SeedSequence(search.seed, spawn_key=(number, island)).generate_state(1)
        return Share(seconds, evaluations, int(words[0]))


@contextmanager
def islands(search: Search, improve: Improve) -> Iterator[Islands | None]:
    """The islands where there are to be workers; None for this process alone.

    Raises:
        SituateError: see `Place.jobs`.
    """
    workers = search.learning.workers
    if workers is None:
        yield None
        return
    function = Function.of(improve, ())
    shared = (search.problem, search.lower_bound)
    with Place.parse(workers).jobs(improved, shared=shared) as jobs:
        yield Islands(search, function, jobs)
