"""Climbing: what `auto` does with the best plan of its rules before it looks at single ops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.decoding import order_of, priority_of
from situate.evaluators.simulated import SimulatedMachine
from situate.grouping import heavy_edge, make_groups
from situate.problem import Problem
from situate.solvers.auto.parts import offer_parts
from situate.solvers.auto.slices import best
from situate.solvers.beginnings import Beginnings
from situate.solvers.climber import GROUPS, HillClimber
from situate.solvers.expert import accelerators
from situate.solvers.scales import coarser, scales_of
from situate.solvers.search import Found, Order, Placement, Search

SHARE = 0.4
"""Part of what is left of the budget that climbing takes at most."""

TRIAL = 0.1
"""Part of it after which climbing ends if it is still behind the plan that it began with."""


def climb(search: Search) -> None:
    """Offer what `hill_climbing` makes of the best plan, in the order of its ops or in the graph's.
    Before that, a plan of large parts may become the best.

    A list scheduler finds other starts for a placement by itself. So a block moves to another
    device in one step, where annealing, whose ops keep their order, goes through worse plans. It
    ends sooner where as many neighbours as there are have been no better.
    """
    if search.finished():
        return
    *partitions, parts = _partitions(search.problem)
    offer_parts(search, parts)
    found = best(search)
    least = found.value if found.feasible else np.inf
    climber, neighbours = _climber(search, found, partitions)
    if search.finished():
        return
    ascent = _Ascent(search, climber, _order(search, found))
    begin = search.left()
    while not search.finished() and (spent := 1 - search.left() / begin) < SHARE:
        ascent.step()
        behind = spent > TRIAL and ascent.seconds >= least
        if behind or ascent.idle > neighbours:
            break
    if ascent.placement is not None and ascent.seconds < least:
        search.offer(ascent.placement, ascent.order)


def _partitions(problem: Problem) -> NDArray[np.int64]:
    """Labels (c, units) of all scales, of single groups first, and of a part an accelerator."""
    counts = [GROUPS, *coarser(GROUPS), len(accelerators(problem))]
    return heavy_edge.partitions(problem, counts)


def _climber(
    search: Search, found: Found, partitions: list[NDArray[np.int64]]
) -> tuple[HillClimber, int]:
    """One that begins with a plan, and how many neighbours every plan has."""
    problem = search.problem
    groups = make_groups(problem, partitions[0])
    scales = scales_of(problem, groups, partitions[1:])
    seconds = problem.seconds[np.arange(problem.n), found.placement]
    begun = Beginnings(groups, lambda: groups.majority(found.placement, seconds))
    climber = HillClimber(groups, scales, begun, search.seed, alone=0.0)
    return climber, sum(map(len, scales)) * problem.d


def _order(search: Search, found: Found) -> Order:
    """The graph's, unless an eager scheduler is later with it than with that of the plan."""
    problem = search.problem
    orders = np.array([problem.graph.order, order_of(problem, found.schedule)], np.int32)
    priorities = np.stack([priority_of(order) for order in orders])
    seconds, _ = search.simulator.evaluate(np.stack([found.placement] * 2), priorities)
    search.evaluations += 2
    return np.asarray(orders[seconds.argmin()], np.int32)


class _Ascent:
    """A climber on the simulator.

    Attributes:
        order: (n,) of ops, in all placements.
        placement, seconds: the best that ran.
        idle: evaluations since it was found.
    """

    def __init__(self, search: Search, climber: HillClimber, order: Order) -> None:
        self._search, self._climber, self.order = search, climber, order
        self._machine = SimulatedMachine(
            search.problem, threads=search.threads, order=order, simulator=search.simulator
        )
        self.placement: Placement | None = None
        self.seconds, self.idle = np.inf, 0

    def step(self) -> None:
        """One batch."""
        placements = self._climber.ask(self._batch())
        measured = self._machine.measure(placements, 0)
        self._climber.tell(placements, measured)
        self._search.evaluations += len(placements)
        seconds = measured.times(np.inf)
        fastest = int(seconds.argmin())
        self.idle += len(placements)
        if seconds[fastest] < self.seconds:
            self.placement, self.seconds = placements[fastest], float(seconds[fastest])
            self.idle = 0
        self._search.report()

    def _batch(self) -> int:
        limit = self._search.evaluation_limit
        left = self._climber.batch if limit is None else limit - self._search.evaluations
        return max(1, min(self._climber.batch, left))
