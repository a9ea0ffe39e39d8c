"""Slices of the batch beside cuts of ops: pipelines over teams, and data parallelism among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from situate.data.cuts import Cuts
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.cut_choice.divisions import Division

BATCH = "batch"
"""The kind of dimension that slices divide."""

MIN_GAIN = 0.02
"""Least relative gain by which a step in slices is preferred to one without."""

EVALUATIONS, FEW_EVALUATIONS, MANY_OPS = 400, 40, 12_000
"""Evaluations of the search for a step in slices, also of one with so many ops."""

MOST_TRIAL_OPS, MOST_WHOLE_OPS = 60_000, 250_000
"""Most ops of a step in slices on which they are compared, and of the step that is planned."""

Shares = tuple[int, ...]
"""The size of each slice as a ratio to the others."""

StepOf = Callable[[Shares, "Cuts | None"], "Problem | None"]
"""Makes the problem of a step in slices and cuts; None if it is not the same step in slices."""


@dataclass(frozen=True)
class SlicePlan:
    """A plan of a step in slices.

    Attributes:
        shares: of the slices.
        plan: of the step in these slices, and in cuts if there are any.
    """

    shares: Shares
    plan: Result


def plan_in_slices(
    step_of: StepOf,
    ops: int,
    batch: Sequence[int],
    divisions: Sequence[Division],
    cuts: Sequence[Cuts | None],
    most_ops: float = MOST_TRIAL_OPS,
) -> SlicePlan | None:
    """The best plan of a step in slices, or None if no slices have one that fits.

    More slices of equal size are tried as long as they gain.

    Args:
        step_of: makes the problems.
        ops: of the step without slices and cuts.
        batch: units of the classes along the batch.
        divisions: of the batch.
        cuts: of ops, to try with all slices; None for whole ops.
        most_ops: of a step in slices and cuts.
    """
    best: SlicePlan | None = None
    for shares in _shares(batch, divisions):
        if ops * len(shares) > most_ops:
            continue
        plan = min(_plans(step_of, shares, cuts, most_ops), key=_value, default=None)
        if plan is None or best is None or _value(plan) < (1 - MIN_GAIN) * _value(best.plan):
            best = best if plan is None else SlicePlan(shares, plan)
        elif len(set(shares)) == 1:
            break
    return best


def is_better(sliced: Result, other: Result) -> bool:
    """True if a plan in slices fits and is shorter than another one by more than `MIN_GAIN`."""
    return not other.feasible or sliced.value < (1 - MIN_GAIN) * other.value


def _shares(batch: Sequence[int], divisions: Sequence[Division]) -> Iterator[Shares]:
    """Shares of the batch, unequal ones first."""
    rows = [cut.shares for division in divisions if (cut := division.cut(BATCH, batch))]
    yield from sorted(dict.fromkeys(rows), key=lambda shares: (len(set(shares)) == 1, len(shares)))


def _plans(
    step_of: StepOf, shares: Shares, cuts: Sequence[Cuts | None], most_ops: float
) -> Iterator[Result]:
    """Feasible plans of a step in these slices."""
    for cuts_of_step in cuts:
        # A step that cannot be sliced or cut so has no plan.
        with suppress(SituateError):
            problem = step_of(shares, cuts_of_step)
            if problem is None or problem.n > most_ops:
                continue
            plan = solve(problem, evaluations=_evaluations(problem))
            if plan.feasible:
                yield plan


def _evaluations(problem: Problem) -> int:
    return EVALUATIONS if problem.n <= MANY_OPS else FEW_EVALUATIONS


def _value(plan: Result) -> float:
    return plan.value
