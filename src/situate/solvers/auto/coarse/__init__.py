"""Coarse problems: a large graph is planned as far fewer ops before it is planned op by op."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from situate.data.problem import Problem
from situate.solvers.auto.coarse.level import Level
from situate.solvers.budget import OutOfTime
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

MIN_OPS = 20_000
"""Smaller graphs are planned op by op alone."""

LEVELS = ((1000, 0.5), (4000, 0.3))
"""Least number of runs on each level, and the level's share of the remaining budget."""

MIN_RATIO = 8
"""Least ratio of ops to runs. Where single ops are as large as runs, or neighbours on the line
exchange nothing, few ops join, and the coarse problem is no simpler."""

OFFERS_TO_SET_UP = 6
"""Setup of a level takes less time than so many offers in its share of the time."""

Plan = Callable[[Search], None]
"""Searches for a plan until the budget ends."""


def plan_coarse(search: Search, plan: Plan, improve: Plan) -> None:
    """Offer the plan of a coarse problem, improved on finer and finer levels.

    Ops next to each other on a line become one op (B. Hendrickson, R. Leland, *A Multilevel
    Algorithm for Partitioning Graphs*, Supercomputing 1995). A move of the search then changes many
    ops, and costs a fraction.

    Args:
        plan: all phases, for the coarsest level.
        improve: continues from the incumbent, for the other levels.
    """
    problem = search.problem
    if not _applies(problem):
        return
    for number, (runs, share) in enumerate(LEVELS):
        if search.finished() or not search.budget.affords(OFFERS_TO_SET_UP / share):
            return
        # From the incumbent, the coarsest level would only end in the basin of some simple rule.
        start = search.incumbent if number else None
        level = Level(problem, runs, None if start is None else start.placement)
        if level.runs * MIN_RATIO <= problem.n:
            _search(search, level, share, improve if number else plan, start)


def _applies(problem: Problem) -> bool:
    by_time = problem.objective == "time" and problem.transfers == "overlapped"
    # Rules for slices and parts, which coarse ops do not have, plan better.
    is_whole = problem.graph.slices is None and problem.graph.cuts is None
    return problem.n >= MIN_OPS and by_time and is_whole


def _search(
    search: Search, level: Level, share: float, phases: Plan, start: Candidate | None
) -> None:
    """Search on a level, from a fine plan if there is one, and offer the result."""
    coarse = _coarse_search(search, level.problem(), share)
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
