"""Plans from a start that somebody else has made, such as the program of a training layout."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from situate.bounds.lower_bound import Bound, tightest_bound
from situate.bounds.rounding import gap, rounding
from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.results.result import Result
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode
from situate.solvers.budget import Budget, OutOfTime
from situate.solvers.registry import METHODS
from situate.solvers.search import Search

BOUND_SECONDS, REFINED_SECONDS = 5.0, 1.0
"""Seconds after which no further bound starts, and no further refinement of one."""


@dataclass(frozen=True)
class StartedPlan:
    """A start and the best plan that a search from it has seen.

    Attributes:
        start: the schedule of the start.
        result: the best plan; the start itself, if nothing better was found.
        floor: a lower bound on all plans that the search may see.
    """

    start: Schedule
    result: Result
    floor: float

    @property
    def gap(self) -> float | None:
        """Distance of the best plan above the floor, as a fraction of the floor; None if it does
        not fit, as the floor bounds plans that fit."""
        if not self.result.feasible:
            return None
        return gap(self.result.problem, self.result.makespan, self.floor)


def plan_from(
    problem: Problem,
    placement: Placement,
    order: Order,
    *,
    time_limit: float | None = None,
    evaluations: int | None = None,
    moves: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> StartedPlan:
    """Decode a start in its own order, verify it, and search from it.

    Without a limit there is no search; with one of evaluations alone the result depends only on the
    start and the seed.

    Args:
        problem: with the objective `time`.
        placement: (n,) devices of the start.
        order: (n,) ops of the start; every device runs its own in this order.
        time_limit: wall seconds of the search, beside those of the start and the bound.
        evaluations: number of decisions to evaluate.
        moves: the search may move ops; otherwise it changes their order alone, unless a group of
            ops has no room on its device.
        seed, threads: of the search, as in `solve`.

    Raises:
        ScheduleError: the start's schedule breaks the execution model.
    """
    start = decode(problem, placement, order, "serial")
    start.verify(problem, allow_overflow=True)
    fixed = not moves and _has_room(problem, placement)
    space = _on_devices(problem, placement) if fixed else problem
    by_clock = time_limit is not None or evaluations is None
    bound = _bound(space, by_clock)
    busiest = _busiest_channel(problem, start) if fixed else 0.0
    floor = max(bound.value, busiest)
    name = bound.name if floor == bound.value else "busiest channel"
    budget = Budget(time_limit, evaluations, enforced=True)
    search = Search(space, floor, name, budget=budget, seed=seed, threads=threads)
    search.offer(placement, order, ["serial"])
    if time_limit is not None or evaluations is not None:
        with suppress(OutOfTime):
            # Devices that do not wait for their turn are often faster at once.
            search.offer(placement, order)
            METHODS["auto"].run(search)
    result = _of_problem(problem, search, by_clock)
    result.schedule.verify(problem, allow_overflow=True)
    return StartedPlan(start, result, floor)


def _bound(problem: Problem, by_clock: bool) -> Bound:
    """A lower bound; the largest of all, unless the result may depend on the clock."""
    if not by_clock:
        return tightest_bound(problem)
    now = time.perf_counter()
    return tightest_bound(problem, now + BOUND_SECONDS, now + REFINED_SECONDS)


def _has_room(problem: Problem, placement: Placement) -> bool:
    """True if each group of ops alone has room on its device."""
    return bool(problem.allowed[problem.unit, placement].all())


def _on_devices(problem: Problem, placement: Placement) -> Problem:
    """The problem whose ops all stay on their devices."""
    allowed = np.zeros((problem.units, problem.d), np.bool_)
    allowed[problem.unit, placement] = True
    return problem.confined(np.arange(problem.units), allowed)


def _busiest_channel(problem: Problem, schedule: Schedule) -> float:
    """Seconds of the busiest channel: where ops stay, so do transfers, which it serves in turn."""
    if not problem.rules.contention:
        return 0.0
    return float(schedule.channel_busy(problem).max(initial=0.0)) * (1 - rounding(problem))


def _of_problem(problem: Problem, search: Search, by_clock: bool) -> Result:
    """The best plan of a search as one of the whole problem, with the bound over all placements."""
    best, bound = search.incumbent, _bound(problem, by_clock)
    whole = Search(problem, bound.value, bound.name, seed=search.seed, threads=search.threads)
    whole.offer(best.placement, best.order, [best.decoder], transfers=best.transfers)
    result = whole.result("layout")
    return replace(result, evaluations=search.budget.evaluations, seconds=search.budget.seconds)
