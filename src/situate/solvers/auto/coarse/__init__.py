"""Coarse problems: a large graph is planned as far fewer ops before it is planned op by op."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.solvers.auto.coarse.level import Level
from situate.solvers.auto.coarse.passes import pass_runs
from situate.solvers.budget import OutOfTime
from situate.solvers.heuristics.baselines import single
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.paced_offering import offer_paced_pipelines

MIN_OPS, MIN_OPS_OF_SLICES = 20_000, 100_000
"""Smaller graphs, and smaller graphs of slices, are planned op by op alone: moves of whole slices
lead to good plans sooner than moves of single ops do."""

LEVELS = ((1000, 0.5), (4000, 0.3))
"""Least number of runs on each level, and the level's share of the remaining budget."""

SHARE_OF_ONE_LEVEL = 0.65
"""Share of the remaining budget for the coarsest level if there is no time for the next."""

MIN_RATIO = 8
"""Least ratio of ops to runs. Where single ops are as large as runs, or neighbours on the line
exchange nothing, few ops join, and the coarse problem is no simpler."""

SLICES_SHARE = 0.8
"""Share of the remaining budget for the coarse problem of a step of slices."""

ROOM = 0.99
"""Share of the devices' memory for a step of slices: a tensor from the middle of a run arrives
earlier in the fine plan than in the coarse one."""

MAX_SEGMENTS, MAX_RUNS, KINDS = 16, 10_000, 4
"""Largest number of segments of the model for each accelerator, and of runs of all slices: in a
segment, a slice has a run of each kind."""

OFFERS_TO_SET_UP = 6
"""Setup of a level takes less time than so many offers in its share of the time."""

OFFERS_TO_SET_UP_PASSES = 20
"""The same for the level of a step of slices."""

Plan = Callable[[Search], None]
"""Searches for a plan until the budget ends."""


def plan_coarse(search: Search, plan: Plan, improve: Plan) -> None:
    """Offer the plan of a coarse problem, improved on finer and finer levels.

    Ops next to each other on a line become one op (B. Hendrickson, R. Leland, *A Multilevel
    Algorithm for Partitioning Graphs*, Supercomputing 1995). A move of the search then changes many
    ops, and costs a fraction. In a step of slices, a coarse op is a segment of the model in one
    slice, and the coarse problem has the same slices.

    Args:
        plan: all phases, for the coarsest level.
        improve: continues from the incumbent, for the other levels.
    """
    if not _applies(search.problem):
        return
    if search.problem.graph.slices is not None:
        _plan_slices(search, plan)
    else:
        _plan_neighbours(search, plan, improve)


def _applies(problem: Problem) -> bool:
    by_time = problem.objective == "time" and problem.transfers == "overlapped"
    # Rules for parts, which coarse ops do not have, plan better.
    least = MIN_OPS if problem.graph.slices is None else MIN_OPS_OF_SLICES
    return problem.n >= least and by_time and problem.graph.cuts is None


def _plan_neighbours(search: Search, plan: Plan, improve: Plan) -> None:
    """Plan on levels of neighbouring ops."""
    problem = search.problem
    for number, (runs, share) in enumerate(_levels(search)):
        if search.finished() or not search.budget.affords(OFFERS_TO_SET_UP / share):
            return
        # From the incumbent, the coarsest level would only end in the basin of some simple rule.
        start = search.incumbent if number else None
        level = Level.of_neighbours(problem, runs, None if start is None else start.placement)
        if level.runs * MIN_RATIO <= problem.n:
            _search(search, level, share, improve if number else plan, start)


def _levels(search: Search) -> tuple[tuple[int, float], ...]:
    """The levels that the search has time for."""
    (coarsest, share), (_, next_share) = LEVELS
    if search.budget.affords(OFFERS_TO_SET_UP / (next_share * (1 - share))):
        return LEVELS
    return ((coarsest, SHARE_OF_ONE_LEVEL),)


def _plan_slices(search: Search, plan: Plan) -> None:
    """Plan on one level of segments of the model, with paced pipelines before all other rules."""
    problem = search.problem
    segments = _segments(problem)
    if not search.budget.affords(OFFERS_TO_SET_UP_PASSES / SLICES_SHARE) or not segments:
        return
    level = Level(problem, *pass_runs(problem, segments))
    if level.runs * MIN_RATIO > problem.n:
        return

    def phases(coarse: Search) -> None:
        single(coarse)
        offer_paced_pipelines(coarse)
        plan(coarse)

    _search(search, level, SLICES_SHARE, phases, None, ROOM)


def _segments(problem: Problem) -> int:
    """Number of segments: a multiple of the accelerators, so that stages consist of segments."""
    assert problem.graph.slices is not None
    devices = len(accelerators(problem))
    runs = KINDS * len(problem.graph.slices.shares) * devices
    return devices * min(MAX_SEGMENTS, MAX_RUNS // runs)


def _search(
    search: Search,
    level: Level,
    share: float,
    phases: Plan,
    start: Candidate | None,
    room: float = 1.0,
) -> None:
    """Search on a level, from a fine plan if there is one, and offer the result.

    Args:
        room: share of the devices' memory that plans of the level may use.
    """
    coarse = _coarse_search(search, level.problem(room), share)
    try:
        with suppress(OutOfTime):
            if start is not None:
                coarse.offer(*level.coarse_plan(start))
            phases(coarse)
    finally:
        search.budget.evaluations += coarse.budget.evaluations
        if coarse.best is not None:
            search.offer(*level.fine_plan(coarse.problem, coarse.best))


def _coarse_search(search: Search, problem: Problem, share: float) -> Search:
    return Search(
        problem,
        budget=search.budget.part(share),
        seed=search.seed,
        threads=search.threads,
        # Its own progress would be of another problem.
        on_progress=lambda _: search.report(),
    )
