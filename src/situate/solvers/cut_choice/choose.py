"""The choice of cuts of ops for a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from situate.bounds.any_cut import is_bounded, least_in_any_cut
from situate.data.cuts import Cuts
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.cut_choice.candidates import candidates
from situate.solvers.cut_choice.cut_step import CutStep
from situate.solvers.cut_choice.divisions import Division, divisions
from situate.solvers.cut_choice.finals import Rival, best_plan, finalists, rank
from situate.solvers.cut_choice.labelling import Labelling, labelled_cuts
from situate.solvers.cut_choice.least import MEANS, LeastOverCuts, Mean
from situate.solvers.cut_choice.slicings import (
    BATCH,
    MOST_TRIAL_OPS,
    MOST_WHOLE_OPS,
    Shares,
    is_better,
    plan_in_slices,
)
from situate.solvers.cut_choice.trial import Trial, smallest_problem, trial_of
from situate.torch_capture.garbage import without_collection

MOST_OPS = 150_000
"""Number of ops, of all tried steps together, after which no further cuts are tried."""

MAX_ESTIMATE = 1.5
"""Largest estimate of a step that is planned, as a multiple of the least one."""

SLICED_TEAMS = 2
"""Number of cuts, for teams of different sizes, that are tried with slices."""


@dataclass(frozen=True)
class CutChoice:
    """The cuts of a step that planning chose.

    Attributes:
        problem: of the step in these cuts, or of whole ops.
        least: seconds that a step takes in any cut into at most as many parts as there are
            accelerators, or 0 where no bound is known.
        slices: True if planning chose slices of the batch, too; `least` is then of these slices.
        rival: other cuts, with which the step is shorter if exchanges run as collectives.
    """

    problem: Problem
    least: float
    slices: bool = False
    rival: Rival | None = None


def choose_cuts(step: CutStep, unequal: bool = True) -> CutChoice:
    """The cuts by which a step is planned best, or whole ops.

    Every combination of kinds and divisions is planned by `tensor_parallel`. The best ones, among
    them the best of equal and of unequal parts, and the step of whole ops then get a short search
    by `auto`. A plan that fits beats one that does not; then the smaller objective wins. A large
    step is compared with fewer of its repeated blocks, on devices with as much less memory. The
    result depends on the problem alone.

    Args:
        step: whole or in parts.
        unequal: False to try equal parts alone.

    Raises:
        SituateError: the step has nothing to cut, or fits no device in any cut.
    """
    if not step.units:
        raise SituateError("cuts auto: the step has no dimension to cut: leave --cuts out")
    whole = smallest_problem(step)
    trial = trial_of(step, whole)
    ways = [way for way in divisions(trial.problem) if unequal or way.is_equal]
    plans = _first_plans(trial, ways)
    problems = finalists(plans)
    if trial.problem.graph.cuts is None:
        problems.insert(0, trial.problem)
    plan, rival = best_plan(problems)
    # A trial of fewer blocks has as many fewer ops.
    most_ops = min(MOST_TRIAL_OPS, MOST_WHOLE_OPS * trial.problem.n / whole.n)
    if (choice := _in_slices(step, trial, plans, plan, ways, most_ops)) is not None:
        return choice
    best = plan.problem
    if trial.step is not step:
        best = whole if best.graph.cuts is None else step.problem_of(best.graph.cuts)
    if whole.graph.cuts is not None:
        return CutChoice(best, 0.0, rival=rival)
    return CutChoice(best, _least(step, trial, whole), rival=rival)


def _in_slices(
    step: CutStep,
    trial: Trial,
    plans: Mapping[Cuts, Result],
    best: Result,
    ways: Sequence[Division],
    most_ops: float,
) -> CutChoice | None:
    """The step in slices, if the best plan of the trial in slices is better than the best one
    without."""
    batch = trial.step.units.get(BATCH)
    if not batch or trial.problem.graph.slices is not None or trial.problem.graph.cuts is not None:
        return None

    def step_of(shares: Shares, cuts: Cuts | None) -> Problem | None:
        in_slices = trial.step.sliced(shares)
        return None if in_slices is None else trial.on_devices(in_slices.problem_of(cuts))

    cuts = (None, *_teams(plans))
    sliced = plan_in_slices(step_of, trial.problem.n, batch, ways, cuts, most_ops)
    if sliced is None or not is_better(sliced.plan, best):
        return None
    in_slices = step.sliced(sliced.shares)
    if in_slices is None:
        return None
    problem = in_slices.problem_of(sliced.plan.problem.graph.cuts)
    whole = in_slices.problem_of(None)
    return CutChoice(problem, least_in_any_cut(whole, len(accelerators(whole))), True)


def _teams(plans: Mapping[Cuts, Result]) -> list[Cuts]:
    """The best cuts among those that leave the batch whole, for each of `SLICED_TEAMS` sizes of
    teams."""
    ranked = [
        cuts
        for cuts in sorted(plans, key=lambda cuts: rank(plans[cuts]))
        if all(cut.name != BATCH for cut in cuts.cuts)
    ]
    of_size = {len(cuts.cuts[0].shares): cuts for cuts in reversed(ranked)}
    best = sorted(of_size.values(), key=ranked.index)
    return best[:SLICED_TEAMS]


@without_collection()
def _least(step: CutStep, trial: Trial, whole: Problem) -> float:
    """Seconds that the step takes in any cut. Of a large step, the mean that is best for the trial
    is the only one."""
    most_parts = len(accelerators(whole))
    letters = step.letters() if is_bounded(whole) else None
    if letters is None:
        return least_in_any_cut(whole, most_parts)
    means: Sequence[Mean] = MEANS
    if trial.step is not step and (short := trial.step.letters()):
        means = (max(MEANS, key=LeastOverCuts(trial.problem, short, most_parts).seconds),)
    bounds = LeastOverCuts(whole, letters, most_parts)
    return max(bounds.simple_seconds(), *map(bounds.seconds, means))


def _first_plans(trial: Trial, ways: Sequence[Division]) -> dict[Cuts, Result]:
    """By cuts, the plans of `tensor_parallel`, the most promising cuts first.

    With an estimate of each step, those far above the least one are left out once a plan fits.
    """
    problem = trial.problem
    cuts = [*candidates(ways, trial.step.units)]
    estimates = dict.fromkeys(cuts, 0.0)
    if problem.graph.cuts is None and (letters := trial.step.letters()):
        labelling = Labelling(problem, letters, ways)
        cuts = [*dict.fromkeys((*labelled_cuts(problem, letters, ways), *cuts))]
        estimates = {candidate: labelling.seconds(candidate) for candidate in cuts}
        cuts.sort(key=estimates.__getitem__)
    most = MAX_ESTIMATE * min(filter(None, estimates.values()), default=np.inf)
    plans: dict[Cuts, Result] = {}
    ops = 0
    for candidate in cuts:
        is_far = estimates[candidate] > most and any(plan.feasible for plan in plans.values())
        if is_far or ops > MOST_OPS:
            break
        # A combination whose shares divide no class of some kind is none.
        with suppress(SituateError):
            plans[candidate] = solve(trial.problem_of(candidate), "tensor_parallel")
            ops += plans[candidate].problem.n
    return plans
