"""The choice of cuts of ops for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import gcd, log2

import msgspec
import numpy as np

from situate.bounds.load import least_load
from situate.data.cuts import MOST, Cut, Cuts
from situate.data.graph import Op
from situate.data.problem import Problem
from situate.data.slices import nearest_samples
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.results.result import Result
from situate.solvers import solve

EVALUATIONS = 400
"""Evaluations of the short search by `auto` for each finalist."""

FINALISTS = 2
"""The number of cut steps that `auto` plans, beside the step of whole ops."""

MOST_OPS = 150_000
"""Number of ops, of all tried steps together, after which no further cuts are tried."""

USUAL = 8
"""A number of parts that pays on most machines: the GPUs of a server."""

INNER = ("experts", "heads", "features", "vocabulary", "channels")
"""Kinds of dimensions that carry parameters, which tensor parallelism cuts; experts come first."""

OUTER = ("sequence", "batch")
"""Kinds of dimensions of the activations alone."""

ProblemOf = Callable[["Cuts | None"], Problem]

Units = Mapping[str, Sequence[int]]
"""By kind, the units of each class of that kind, such as the heads of each layer."""


@dataclass(frozen=True)
class CutChoice:
    """The cuts of a step that planning chose.

    Attributes:
        problem: of the step in these cuts, or of whole ops.
        least: seconds that a step takes in any cut, or 0 where no bound is known.
    """

    problem: Problem
    least: float


def choose_cuts(problem_of: ProblemOf, units: Units) -> CutChoice:
    """The cuts by which a step is planned best, or whole ops.

    Every combination of kinds and numbers of parts is planned by `tensor_parallel`. The best ones
    and the step of whole ops then get a short search by `auto`. A plan that fits beats one that
    does not; then the smaller objective wins. The result depends on the problem alone.

    Args:
        problem_of: makes the problem of the step with these cuts.
        units: of the step's classes.

    Raises:
        SituateError: the step has nothing to cut.
    """
    if not units:
        raise SituateError("cuts auto: the step has no dimension to cut: leave --cuts out")
    whole = problem_of(None)
    problems: dict[Cuts, Problem] = {}
    plans: dict[Cuts, Result] = {}
    for cuts in candidates(whole, units):
        # A combination whose shares divide no class of some kind is none.
        with suppress(SituateError):
            problems[cuts] = problem_of(cuts)
            plans[cuts] = solve(problems[cuts], "tensor_parallel")
    ranked = sorted(plans, key=lambda cuts: _rank(plans[cuts]))
    finalists = [whole, *(problems[cuts] for cuts in ranked[:FINALISTS])]
    best = min((solve(p, evaluations=EVALUATIONS) for p in finalists), key=_rank)
    return CutChoice(best.problem, least_seconds(whole))


def least_seconds(whole: Problem) -> float:
    """Seconds that a step takes in any cut; 0 where no bound is known.

    By the roofline, a part of an op takes at least its share of the op's time. So the least load of
    the devices stays: its linear program divides ops among devices in any shares. Copies do not
    count, because a part that lies in memory as its readers want it needs none.

    Args:
        whole: the step of whole ops.
    """
    if whole.objective != "time" or whole.transfers == "atomic" or whole.costs is not None:
        return 0.0
    ops = tuple(_without_copy(op) for op in whole.graph.ops)
    return float(least_load(replace(whole, graph=replace(whole.graph, ops=ops))).seconds)


def _without_copy(op: Op) -> Op:
    if op.kind != "aten.clone":
        return op
    return msgspec.structs.replace(op, flops=0, traffic=0, seconds={"*": 0.0})


def candidates(problem: Problem, units: Units) -> Iterator[Cuts]:
    """The cuts to try: shares by the speed of the devices where they differ, then equal parts for
    all accelerators and for teams of 2, 4, 8, ... of them.

    Numbers near `USUAL` come first, and the last ones are left out where the steps would have more
    than `MOST_OPS` ops together.
    """
    devices = accelerators(problem)
    counts = [c for c in (2**k for k in range(1, 10)) if c < len(devices) and not len(devices) % c]
    inner, outer = ([kind for kind in kinds if kind in units] for kinds in (INNER, OUTER))
    sets = [[*inner, kind] for kind in outer] + [inner] + [[kind] for kind in outer]
    numbers = [count for count in (*counts, min(len(devices), MOST)) if count > 1]
    numbers.sort(key=lambda count: (abs(log2(count / USUAL)), count))
    unequal = (_by_speed(problem, kinds, units) for kinds in sets)
    equal = (_equal(kinds, count, units) for count in numbers for kinds in sets)
    ops = 0
    for cuts in filter(None, dict.fromkeys((*unequal, *equal))):
        ops += problem.n * len(cuts[0].shares)
        yield Cuts(cuts)
        if ops > MOST_OPS:
            return


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
