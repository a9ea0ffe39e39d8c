"""The choice of cuts of ops for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import gcd, log2
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from situate.bounds.any_cut import least_in_any_cut
from situate.data.cuts import MOST, Cut, Cuts
from situate.data.graph import Graph
from situate.data.letter_graph import LetterGraph
from situate.data.problem import Problem
from situate.data.slices import nearest_samples
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.cut_labelling import Labelling, labelled_cuts

if TYPE_CHECKING:
    from situate.torch_capture import TracedStep

EVALUATIONS = 400
"""Evaluations of the short search by `auto` for each finalist."""

FINALISTS = 2
"""The number of cut steps that `auto` plans, beside the step of whole ops."""

MOST_OPS = 150_000
"""Number of ops, of all tried steps together, after which no further cuts are tried."""

MAX_ESTIMATE = 1.5
"""Largest estimate of a step that is planned, as a multiple of the least one."""

USUAL = 8
"""A number of parts that pays on most machines: the GPUs of a server."""

INNER = ("experts", "heads", "features", "vocabulary", "channels")
"""Kinds of dimensions that carry parameters, which tensor parallelism cuts; experts come first."""

OUTER = ("sequence", "batch")
"""Kinds of dimensions of the activations alone."""

MANY_OPS = 2_000
"""Number of whole ops from which candidates are compared on fewer of the repeated blocks."""

BLOCKS = 4
"""Number of repeated blocks of such a shorter step for each `TEAM` devices."""

TEAM = 16
"""Devices that the blocks of a shorter step keep busy, as stages that hold its parameters."""

ROOM = 4
"""Least memory of a device for a shorter step, as a multiple of its largest parameter."""

ProblemOf = Callable[["Cuts | None"], Problem]

Units = Mapping[str, Sequence[int]]
"""By kind, the units of each class of that kind, such as the heads of each layer."""


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
            lambda: step.letters,
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


def choose_cuts(step: CutStep) -> CutChoice:
    """The cuts by which a step is planned best, or whole ops.

    Every combination of kinds and numbers of parts is planned by `tensor_parallel`. The best ones
    and the step of whole ops then get a short search by `auto`. A plan that fits beats one that
    does not; then the smaller objective wins. A large step is compared with fewer of its repeated
    blocks, on devices with as much less memory. The result depends on the problem alone.

    Raises:
        SituateError: the step has nothing to cut, or fits no device in any cut.
    """
    if not step.units:
        raise SituateError("cuts auto: the step has no dimension to cut: leave --cuts out")
    whole = _smallest_problem(step)
    trial = _trial(step, whole)
    plans = _first_plans(trial)
    ranked = sorted(plans.values(), key=_rank)
    # Cuts that divide the same ops make the same step.
    distinct = {(plan.value, plan.problem.n): plan.problem for plan in reversed(ranked)}
    finalists = [*reversed(distinct.values())][:FINALISTS]
    if trial.problem.graph.cuts is None:
        finalists.insert(0, trial.problem)
    best = min((solve(p, evaluations=EVALUATIONS) for p in finalists), key=_rank).problem
    if trial.step is not step:
        best = whole if best.graph.cuts is None else step.problem_of(best.graph.cuts)
    if whole.graph.cuts is not None:
        return CutChoice(best, 0.0)
    return CutChoice(best, least_in_any_cut(whole, max(_counts(whole), default=1)))


def _first_plans(trial: _Trial) -> dict[Cuts, Result]:
    """By cuts, the plans of `tensor_parallel`, the most promising cuts first.

    With an estimate of each step, those far above the least one are left out once a plan fits.
    """
    problem = trial.problem
    cuts = [*candidates(problem, trial.step.units)]
    estimates = dict.fromkeys(cuts, 0.0)
    if problem.graph.cuts is None and (letters := trial.step.letters()):
        counts = _counts(problem)
        labelling = Labelling(problem, letters, counts)
        cuts = [*dict.fromkeys((*labelled_cuts(problem, letters, counts), *cuts))]
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
            if cuts := _equal(kinds, count, step.units):
                with suppress(SituateError):
                    return step.problem_of(Cuts(cuts))
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


def candidates(problem: Problem, units: Units) -> Iterator[Cuts]:
    """The cuts to try: shares by the speed of the devices where they differ, then equal parts for
    all accelerators and for teams of 2, 4, 8, ... of them.

    Numbers near `USUAL` come first.
    """
    inner, outer = ([kind for kind in kinds if kind in units] for kinds in (INNER, OUTER))
    # Behind an outer dimension, the inner ones cut parameters alone, as ZeRO and FSDP do.
    sets = [[*inner, kind] for kind in outer] + [inner] + [[kind] for kind in outer]
    sets += [[kind, *inner] for kind in outer if inner]
    numbers = sorted(_counts(problem), key=lambda count: (abs(log2(count / USUAL)), count))
    unequal = (_by_speed(problem, kinds, units) for kinds in sets)
    equal = (_equal(kinds, count, units) for count in numbers for kinds in sets)
    yield from map(Cuts, filter(None, dict.fromkeys((*unequal, *equal))))


def _counts(problem: Problem) -> list[int]:
    """Numbers of parts: all accelerators, and teams of 2, 4, 8, ... of them."""
    devices = len(accelerators(problem))
    counts = [count for count in (2**k for k in range(1, 10)) if count < devices]
    teams = [count for count in counts if not devices % count]
    return [count for count in (*teams, min(devices, MOST)) if count > 1]


def _equal(kinds: Sequence[str], count: int, units: Units) -> tuple[Cut, ...]:
    """Equal parts of the kinds of which some class can have so many."""
    cuts = (Cut(kind, (1,) * count) for kind in kinds)
    return tuple(cut for cut in cuts if any(cut.bounds(size) for size in units[cut.name]))


def _by_speed(problem: Problem, kinds: Sequence[str], units: Units) -> tuple[Cut, ...]:
    """Parts in proportion to the speeds of the accelerators; none if they are equally fast."""
    devices = accelerators(problem)
    seconds = problem.seconds[:, devices]
    total = seconds[np.isfinite(seconds).all(axis=1)].sum(axis=0)
    if len(devices) < 2 or not total.min() or total.max() <= 1.05 * total.min():
        return ()
    speeds = np.maximum(1, np.round(100 * total.min() / total)).astype(int).tolist()
    cuts = []
    for kind in kinds:
        common = gcd(*units[kind])
        if common >= len(devices):
            shares = nearest_samples(speeds, common)
            divisor = gcd(*shares)
            cuts.append(Cut(kind, tuple(share // divisor for share in shares)))
    return tuple(cuts)


def _rank(plan: Result) -> tuple[int, float]:
    """(excess bytes, value); smaller is better."""
    return plan.schedule.excess(plan.problem), plan.value
