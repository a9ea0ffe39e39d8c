"""The choice of cuts of ops for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from situate.bounds.any_cut import is_bounded, least_in_any_cut
from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.letter_graph import LetterGraph
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.cut_choice.candidates import INNER, Units, candidates, divided
from situate.solvers.cut_choice.divisions import Division, divisions
from situate.solvers.cut_choice.labelling import Labelling, labelled_cuts
from situate.solvers.cut_choice.least import MEANS, LeastOverCuts, Mean
from situate.torch_capture.garbage import without_collection

if TYPE_CHECKING:
    from situate.torch_capture import TracedStep

EVALUATIONS = 400
"""Evaluations of the short search by `auto` for each finalist."""

FINALISTS, MOST_FINALISTS, MOST_FINALIST_OPS = 2, 6, 12_000
"""The number of cut steps that `auto` plans at least, beside the step of whole ops; their largest
number, and the most ops of all further ones together."""

MAX_CLOSE, LONGER = 1.1, 4
"""Largest value of a finalist, as a multiple of the best one, for a second search, which is so many
times as long. The searches of large steps end with the first."""

MOST_OPS = 150_000
"""Number of ops, of all tried steps together, after which no further cuts are tried."""

MAX_ESTIMATE = 1.5
"""Largest estimate of a step that is planned, as a multiple of the least one."""

MANY_OPS = 2_000
"""Number of whole ops from which candidates are compared on fewer of the repeated blocks."""

BLOCKS = 4
"""Number of repeated blocks of such a shorter step for each `TEAM` devices."""

TEAM = 32
"""Devices that the blocks of a shorter step keep busy, as stages that hold its parameters."""

ROOM = 4
"""Least memory of a device for a shorter step, as a multiple of its largest parameter."""

ProblemOf = Callable[["Cuts | None"], Problem]


@dataclass(frozen=True)
class CutStep:
    """A step whose ops may be cut.

    Attributes:
        problem_of: makes the problem of the step with these cuts, or of whole ops.
        units: of the step's classes.
        shorter: the step with at most this many repeated blocks; None if that is no other.
        letters: the ops of the step with the classes that may cut them; None if unknown.
    """

    problem_of: ProblemOf
    units: Units
    shorter: Callable[[int], CutStep | None] = lambda _: None
    letters: Callable[[], LetterGraph | None] = lambda: None

    @classmethod
    def of(
        cls,
        step: TracedStep,
        problem_of: Callable[[Graph], Problem],
        recompute: Sequence[str] = (),
    ) -> CutStep:
        """The problems of a traced step.

        Args:
            problem_of: makes the problem of a graph.
            recompute: modules that run again. They may be missing in a shorter step.
        """

        def shorter(blocks: int) -> CutStep | None:
            short = None if recompute else step.shorter(blocks)
            return None if short is None else cls.of(short, problem_of)

        return cls(
            lambda cuts: problem_of(step.graph(recompute, cuts)),
            step.units,
            shorter,
            # Modules that run again have ops of which the letters know nothing.
            lambda: None if recompute else step.letters,
        )


@dataclass(frozen=True)
class CutChoice:
    """The cuts of a step that planning chose.

    Attributes:
        problem: of the step in these cuts, or of whole ops.
        least: seconds that a step takes in any cut into at most as many parts as there are
            accelerators, or 0 where no bound is known.
    """

    problem: Problem
    least: float


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
    whole = _smallest_problem(step)
    trial = _trial(step, whole)
    ways = [own for own in divisions(trial.problem) if unequal or own.is_equal]
    finalists = _finalists(_first_plans(trial, ways))
    if trial.problem.graph.cuts is None:
        finalists.insert(0, trial.problem)
    best = _best(finalists)
    if trial.step is not step:
        best = whole if best.graph.cuts is None else step.problem_of(best.graph.cuts)
    if whole.graph.cuts is not None:
        return CutChoice(best, 0.0)
    return CutChoice(best, _least(step, trial, whole))


@without_collection()
def _least(step: CutStep, trial: _Trial, whole: Problem) -> float:
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


def _finalists(plans: Mapping[Cuts, Result]) -> list[Problem]:
    """The best steps of all, of those in equal parts and of those in unequal ones."""
    ranked = sorted(plans, key=lambda cuts: _rank(plans[cuts]))
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


def _best(finalists: Sequence[Problem]) -> Problem:
    """The step with the best plan of a short search; those that are close get a longer one."""
    plans = sorted((solve(p, evaluations=EVALUATIONS) for p in finalists), key=_rank)
    excess, value = _rank(plans[0])
    close: list[Problem] = []
    for plan in plans:
        is_close = _rank(plan)[0] == excess and plan.value <= MAX_CLOSE * value
        if is_close and sum(p.n for p in (*close, plan.problem)) <= MOST_FINALIST_OPS:
            close.append(plan.problem)
    if len(close) < 2:
        return plans[0].problem
    longer = (solve(problem, evaluations=LONGER * EVALUATIONS) for problem in close)
    return min(longer, key=_rank).problem


def _first_plans(trial: _Trial, ways: Sequence[Division]) -> dict[Cuts, Result]:
    """By cuts, the plans of `tensor_parallel`, the most promising cuts first.

    With an estimate of each step, those far above the least one are left out once a plan fits.
    """
    problem = trial.problem
    cuts = [*candidates(ways, trial.step.units)]
    estimates = dict.fromkeys(cuts, 0.0)
    if problem.graph.cuts is None and (letters := trial.step.letters()):
        labelling = Labelling(problem, letters, ways)
        cuts = [*dict.fromkeys((*labelled_cuts(problem, letters, ways), *cuts))]
        estimates = {own: labelling.seconds(own) for own in cuts}
        cuts.sort(key=estimates.__getitem__)
    most = MAX_ESTIMATE * min(filter(None, estimates.values()), default=np.inf)
    plans: dict[Cuts, Result] = {}
    ops = 0
    for own in cuts:
        is_far = estimates[own] > most and any(plan.feasible for plan in plans.values())
        if is_far or ops > MOST_OPS:
            break
        # A combination whose shares divide no class of some kind is none.
        with suppress(SituateError):
            plans[own] = solve(trial.problem_of(own), "tensor_parallel")
            ops += plans[own].problem.n
    return plans


def _smallest_problem(step: CutStep) -> Problem:
    """The problem of whole ops, or in the fewest parts that fit some device.

    Raises:
        SituateError: there is none.
    """
    kinds = [kind for kind in INNER if kind in step.units]
    try:
        return step.problem_of(None)
    except SituateError:
        for count in (2**k for k in range(1, 10)):
            if cuts := divided(Division.equal(count), kinds, step.units):
                with suppress(SituateError):
                    return step.problem_of(cuts)
        raise


@dataclass(frozen=True)
class _Trial:
    """A step on which candidates are compared.

    Attributes:
        problem: of whole ops, or of the fewest parts that fit.
        memory: the memory of a device as a fraction of the real one.
        least: bytes that it has at least.
    """

    step: CutStep
    problem: Problem
    memory: float = 1.0
    least: int = 0

    def problem_of(self, cuts: Cuts | None) -> Problem:
        return self.on_devices(self.step.problem_of(cuts))

    def on_devices(self, problem: Problem) -> Problem:
        """The problem on devices with this memory."""
        if self.memory == 1:
            return problem
        cluster = problem.cluster
        devices = [
            device
            if device.memory is None
            else msgspec.structs.replace(
                device, memory=min(device.memory, max(self.least, int(device.memory * self.memory)))
            )
            for device in cluster.devices
        ]
        return replace(problem, cluster=replace(cluster, devices=tuple(devices)))


def _trial(step: CutStep, whole: Problem) -> _Trial:
    """The step itself, or one with fewer blocks if it is large."""
    if whole.n < MANY_OPS or whole.graph.cuts is not None:
        return _Trial(step, whole)
    short = step.shorter(BLOCKS * max(1, len(accelerators(whole)) // TEAM))
    if short is None:
        return _Trial(step, whole)
    problem = short.problem_of(None)
    fraction = problem.persistent.sum() / max(1, whole.persistent.sum())
    trial = _Trial(short, problem, min(1.0, float(fraction)), ROOM * int(problem.persistent.max()))
    return replace(trial, problem=trial.on_devices(problem))


def _rank(plan: Result) -> tuple[int, float]:
    """(excess bytes, value); smaller is better."""
    return plan.schedule.excess(plan.problem), plan.value
