"""The last choice among cut steps: a search for each finalist, timed by transfers and, beside it,
with collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from situate.data.cuts import Cuts
from situate.data.problem import Problem
from situate.results.result import Result
from situate.simulation.collectives import in_collectives
from situate.solvers import solve

EVALUATIONS = 400
"""Evaluations of the short search by `auto` for each finalist."""

FINALISTS, MOST_FINALISTS, MOST_FINALIST_OPS = 2, 6, 12_000
"""The number of cut steps that `auto` plans at least, beside the step of whole ops; their largest
number, and the most ops of all further ones together."""

MAX_CLOSE, LONGER = 1.1, 4
"""Largest value of a finalist, as a multiple of the best one, for a second search, which is so many
times as long. The searches of large steps end with the first."""

MIN_GAIN = 0.01
"""Least relative gain with collectives for which other cuts are named."""


@dataclass(frozen=True)
class Rival:
    """Cuts with which the step is shorter than in the chosen ones if exchanges run as collectives.

    Attributes:
        gain: the share of the seconds of the chosen step with collectives that they save.
    """

    cuts: Cuts
    gain: float


def finalists(plans: Mapping[Cuts, Result]) -> list[Problem]:
    """The best steps of all, of those in equal parts and of those in unequal ones."""
    ranked = sorted(plans, key=lambda cuts: rank(plans[cuts]))
    # Cuts that divide the same ops make the same step.
    distinct = {(plans[cuts].value, plans[cuts].problem.n): cuts for cuts in reversed(ranked)}
    best = [*reversed(distinct.values())]
    unequal = [cuts for cuts in best if _is_unequal(cuts)]
    equal = [cuts for cuts in best if not _is_unequal(cuts)]
    few = [*best[:FINALISTS], *unequal[:1], *equal[:1]]
    ops = 0
    for cuts in best[FINALISTS:MOST_FINALISTS]:
        ops += plans[cuts].problem.n
        if ops <= MOST_FINALIST_OPS:
            few.append(cuts)
    return [plans[cuts].problem for cuts in dict.fromkeys(few)]


def _is_unequal(cuts: Cuts) -> bool:
    return any(len(set(cut.shares)) > 1 for cut in cuts.cuts)


def best_plan(problems: Sequence[Problem]) -> tuple[Result, Rival | None]:
    """The best plan of a short search, and its rival; steps that are close to it get a longer one.

    Args:
        problems: of the finalists.
    """
    plans = sorted((solve(p, evaluations=EVALUATIONS) for p in problems), key=rank)
    excess, value = rank(plans[0])
    near = [plan for plan in plans if rank(plan)[0] == excess and plan.value <= MAX_CLOSE * value]
    close: list[Problem] = []
    for plan in near:
        if sum(p.n for p in (*close, plan.problem)) <= MOST_FINALIST_OPS:
            close.append(plan.problem)
    if len(close) > 1:
        near = [solve(problem, evaluations=LONGER * EVALUATIONS) for problem in close]
    best = min(near, key=rank)
    return best, _rival(best, near)


def rank(plan: Result) -> tuple[int, float]:
    """(excess bytes, value); smaller is better."""
    return plan.schedule.excess(plan.problem), plan.value


def _rival(best: Result, near: Sequence[Result]) -> Rival | None:
    """The plan of the shortest step with collectives, if that is shorter than the best one's."""
    if len(near) < 2 or (own := _seconds_in_collectives(best)) is None:
        return None
    others = [(_seconds_in_collectives(plan), plan) for plan in near if plan is not best]
    timed = [(seconds, plan) for seconds, plan in others if seconds is not None]
    least, plan = min(timed, key=itemgetter(0), default=(own, best))
    if least > (1 - MIN_GAIN) * own:
        return None
    cuts = plan.problem.graph.cuts
    assert cuts is not None  # a step of whole ops has no collectives
    return Rival(cuts, 1 - least / own)


def _seconds_in_collectives(plan: Result) -> float | None:
    """Seconds of the step of a plan with collectives; None for objectives other than time, and
    where no collective can replace an exchange."""
    if plan.problem.objective != "time":
        return None
    step = in_collectives(plan.problem, plan.schedule)
    return None if step is None else float(step.schedule.makespan)
