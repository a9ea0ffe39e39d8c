"""Climbing: improves the best plan of the rules by moves of blocks before moves of single units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.evaluators.simulated import SimulatedMachine
from situate.grouping import heavy_edge, make_groups
from situate.grouping.groups import Weights
from situate.grouping.units import unit_work
from situate.simulation.decoding import order_of
from situate.solvers.auto.orders import by_rank
from situate.solvers.incumbent import Candidate
from situate.solvers.learned.groups import coarser, levels_of, op_weights
from situate.solvers.learned.initial_placements import InitialPlacements
from situate.solvers.line_cut import on_devices
from situate.solvers.local_search.hill_climbing import GROUPS, HillClimber
from situate.solvers.search import Search

CLIMB_SHARE = 0.4
"""Largest share of the remaining budget for climbing."""

TRIAL_SHARE = 0.1
"""Share of it after which climbing ends if it is still behind its start plan. Its start is worse
than that plan because each group must be on one device."""

TRIAL_EVALUATIONS = 60
"""Least evaluations of that trial, unless climbing's share ends before."""

SECOND_ASCENT_EVALUATIONS = 400
"""With at least so many evaluations in the trial, a second ascent starts with another seed, because
the result depends on the first moves."""

MIN_CORRELATION, MIN_CONSTANTS = 0.99, 0.25
"""Least correlation of units' seconds and work, and least share of the seconds beside that of work,
with which launches decide how long units take."""

SEED_RANGE = 2**32
"""Number of seeds of a search; the second ascent adds it to the seed."""

OFFERS_TO_SET_UP = 20
"""Setup takes less time than so many offers."""

ROUNDING = 1e-9
"""Relative rounding error between values of equally good orders."""

EVALUATIONS_BETWEEN_OFFERS = 50
"""Evaluations between two offers of a better plan."""


def offer_one_part_per_device(search: Search, label: NDArray[np.int64]) -> None:
    """Offer a plan from the parts (units,) of units, in the graph's order and by rank, if it is
    better under an eager scheduler.

    In an unrolled network a part is a layer at all its steps, as in the papers' expert placements.
    """
    placement = one_part_each(search.problem, label)
    for order in (np.array(search.problem.graph.order, np.int32), by_rank(search)):
        search.consider(placement, order, "eager")


def one_part_each(problem: Problem, label: NDArray[np.int64]) -> Placement:
    """Placement (n,) with one part (units,) per accelerator, in the order of their first units; a
    unit that may not run there goes to its first allowed device."""
    _, first, part = np.unique(label, return_index=True, return_inverse=True)
    devices = np.array(accelerators(problem))
    # (parts,) rank of each part by its first unit -> (units,) the device of its part.
    return on_devices(problem, devices[first.argsort().argsort()[part] % len(devices)])


def climb(search: Search) -> None:
    """Improve the incumbent by `hill_climbing`, with ops in its own order, the graph's or by rank.

    A plan with one large part per device may become the incumbent first. A list scheduler adapts
    the starts to each placement, so a block can move in one step. Annealing keeps the order and
    would pass through worse plans. If there is time, the better of two ascents continues. If
    launches take most seconds, the second one moves other blocks, and is tried in any case.
    """
    if search.finished() or not search.budget.affords(OFFERS_TO_SET_UP):
        return
    problem = search.problem
    *partitions, parts = heavy_edge.partitions(problem, _counts(problem))
    offer_one_part_per_device(search, parts)
    incumbent = search.incumbent
    least = incumbent.value if incumbent.feasible else np.inf
    start = _Start(search, incumbent, best_order(search, incumbent))
    ascents = [start.ascent(partitions, "seconds", search.seed)]
    budget = search.budget.remaining()
    end = (1 - CLIMB_SHARE) * budget
    ascents[0].go((1 - TRIAL_SHARE) * budget, end)
    if launches_dominate(problem):
        *partitions, _ = heavy_edge.partitions(problem, _counts(problem), unit_work(problem))
        ascents.append(start.ascent(partitions, "work", search.seed))
    elif ascents[0].seconds < least and ascents[0].evaluations >= SECOND_ASCENT_EVALUATIONS:
        ascents.append(start.ascent(partitions, "seconds", search.seed + SEED_RANGE))
    for second in ascents[1:]:
        # The trial of the first ascent has spent one share already.
        second.go((1 - 2 * TRIAL_SHARE) * budget, end)
    best = min(reversed(ascents), key=lambda ascent: ascent.seconds)
    if best.seconds < least:
        best.go(end, end)


def launches_dominate(problem: Problem) -> bool:
    """True if units take the seconds of their work and a constant each, and the constants are a
    quarter of all seconds or more.

    Blocks that are balanced by seconds then have equal numbers of ops, whichever layers these
    belong to. Blocks that are balanced by work follow the layers.
    """
    work = unit_work(problem)
    seconds = np.bincount(problem.unit, problem.seconds.min(axis=1))
    if not np.isfinite(seconds).all() or work.std() == 0 or seconds.std() == 0:
        return False
    # Least squares: seconds = constant + slope x work.
    correlation = np.corrcoef(work, seconds)[0, 1]
    slope = correlation * seconds.std() / work.std()
    constants = 1 - slope * work.sum() / seconds.sum()
    return bool(correlation > MIN_CORRELATION and constants > MIN_CONSTANTS)


def _counts(problem: Problem) -> list[int]:
    """Numbers of blocks of all levels, the groups first, and of one part per accelerator last."""
    return [GROUPS, *coarser(GROUPS), len(accelerators(problem))]


@dataclass(frozen=True)
class _Start:
    """The plan where ascents begin, and the order in which an eager scheduler runs it."""

    search: Search
    candidate: Candidate
    order: Order

    def ascent(self, partitions: list[NDArray[np.int64]], weights: Weights, seed: int) -> _Ascent:
        """An ascent in blocks.

        Args:
            partitions: labels (c, units) of all levels, the groups first.
            weights: of ops, by which a group joins a block.
        """
        problem, placement = self.search.problem, self.candidate.placement
        groups = make_groups(problem, partitions[0])
        levels = levels_of(problem, groups, partitions[1:], op_weights(problem, weights))
        # (n,) seconds of each op on its device: a group starts on the device with most of its
        # seconds.
        seconds = problem.seconds[np.arange(problem.n), placement]
        start = InitialPlacements(groups, lambda: groups.majority(placement, seconds))
        # Every move draws its level evenly; annealing moves single units later.
        learner = HillClimber(groups, levels, start, seed, alone=0.0)
        # Number of pairs of a block and a device.
        neighbours = sum(map(len, levels)) * problem.d
        return _Ascent(self.search, learner, self.order, neighbours)


def best_order(search: Search, candidate: Candidate) -> Order:
    """The order (n,) in which an eager scheduler runs the plan best: the graph's, by rank, or the
    plan's own.

    Ties go to the earlier, because it suits other placements as well.
    """
    problem = search.problem
    own = order_of(problem, candidate.schedule)
    # The first of equally good ones is taken, so the most general stands first.
    orders = [np.array(problem.graph.order, np.int32), by_rank(search), own]
    scores = [search.estimate(candidate.placement, order, "eager") for order in orders]
    excess, least = min(scores)
    return next(
        order
        for order, score in zip(orders, scores, strict=True)
        if score[0] == excess and score[1] <= least * (1 + ROUNDING)
    )


class _Ascent:
    """Hill climbing on the simulator, with an order of ops for all placements.

    Attributes:
        evaluations: so far.
        seconds: of the best placement that ran.
    """

    def __init__(self, search: Search, learner: HillClimber, order: Order, neighbours: int) -> None:
        self._search, self._learner, self._order = search, learner, order
        self._machine = SimulatedMachine(
            search.problem, threads=search.threads, order=order, simulator=search.simulator
        )
        self._neighbours = neighbours
        self._placement: Placement | None = None
        self.evaluations, self.seconds = 0, np.inf
        self._bettered = self._offered = 0

    def go(self, trial: float, end: float) -> None:
        """Climb until the remaining budget falls to `trial`, after at least `TRIAL_EVALUATIONS`.

        The ascent ends earlier if the remaining budget falls to `end`, or after as many failures as
        there are neighbours.
        """
        try:
            while (
                not self._search.finished()
                and self.evaluations - self._bettered <= self._neighbours
                and (budget := self._search.budget.remaining()) > end
                and (budget > trial or self.evaluations < TRIAL_EVALUATIONS)
            ):
                self._step()
        finally:
            self.offer()

    def _step(self) -> None:
        """One batch."""
        placements = self._learner.ask(self._batch())
        measurements = self._machine.measure(placements, 0)
        self._learner.tell(placements, measurements)
        self.evaluations += len(placements)
        self._search.budget.evaluations += len(placements)
        seconds = measurements.times(np.inf)
        fastest = int(seconds.argmin())
        if seconds[fastest] < self.seconds:
            self._placement, self.seconds = placements[fastest], float(seconds[fastest])
            self._bettered = self.evaluations
        if self.evaluations >= self._offered + EVALUATIONS_BETWEEN_OFFERS:
            self.offer()
        self._search.report()

    def offer(self) -> None:
        """Offer the best placement if it is better than the incumbent."""
        incumbent, self._offered = self._search.incumbent, self.evaluations
        if self._placement is not None and not (
            incumbent.feasible and incumbent.value <= self.seconds
        ):
            self._search.offer(self._placement, self._order)

    def _batch(self) -> int:
        limit = self._search.budget.evaluation_limit
        evaluations_left = (
            self._learner.batch if limit is None else limit - self._search.budget.evaluations
        )
        return max(1, min(self._learner.batch, evaluations_left))
