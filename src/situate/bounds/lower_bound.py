"""Lower bounds on the objective; docs/bounds.md derives them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.bounds.deadline import least_deadline
from situate.bounds.load import Load, least_load
from situate.bounds.memory import needs
from situate.bounds.paths import Paths, expected_seconds, with_joins
from situate.bounds.rounding import rounding
from situate.bounds.split import least_split
from situate.bounds.together import least_group, least_together
from situate.bounds.windows import least_narrow, least_window
from situate.data.problem import Problem

BOUNDING, BOUNDING_AT_LEAST = 0.2, 0.5
"""Share of a search's time limit for its lower bound, and the least seconds for it."""

BOUNDED_BY = 0.75
"""Share of the time limit after which the first bound must not end."""

REFINING, REFINING_AT_LEAST = 0.1, 0.05
"""Share of the time limit for the bounds by joins, deadlines and splits, and the seconds below
which they gain less than the search loses."""

SMALLEST_TIME = float(np.finfo(np.float64).smallest_subnormal)
"""Rounding error of a product of times near zero, which no relative error covers."""

FEW = 1000
"""Number of times in the first, cheap check for whole numbers."""


@dataclass(frozen=True)
class Bound:
    """A lower bound on the value of feasible plans.

    Attributes:
        value: seconds, or bytes for `memory`.
        name: of the largest bound, as in docs/bounds.md.
    """

    value: float
    name: str


def bound_in_time(
    problem: Problem,
    begin: float,
    time_limit: float | None,
    core: _core.problem.Problem | None = None,
) -> Bound:
    """The lower bound of a search, computed within a share of the search's time.

    Args:
        problem: of the search.
        begin: time of `time.perf_counter` at the start of the search.
        time_limit: seconds of the search. None lets every bound finish, because without a limit the
            result must not depend on the clock.
        core: the core's copy of the problem, if there is one. Of a large problem another copy takes
            much memory.
    """
    limit = math.inf if time_limit is None else time_limit
    until = max(min(BOUNDING_AT_LEAST, limit), BOUNDING * limit)
    until = min(until, BOUNDED_BY * limit - expected_seconds(problem))
    refining = REFINING * limit
    refined_until = refining if refining >= REFINING_AT_LEAST else 0.0
    return tightest_bound(problem, begin + until, begin + refined_until, core)


def lower_bound(problem: Problem, until: float = math.inf) -> float:
    """The value of `tightest_bound`."""
    return tightest_bound(problem, until).value


def tightest_bound(
    problem: Problem,
    until: float = math.inf,
    refined_until: float = math.inf,
    core: _core.problem.Problem | None = None,
) -> Bound:
    """The largest of all bounds on the objective.

    Args:
        problem: of the plans.
        until: time of `time.perf_counter` after which no other bound starts. The ascent for the
            load ends then, too, and so do the flows, the tree order and the best order of memory.
        refined_until: the same for the search for joins, the refutation of deadlines and the ascent
            for the split.
    """
    if problem.objective == "memory":
        need = max(needs(problem, until), key=lambda need: need.peak)
        return Bound(float(need.peak), need.name)
    # Of equal bounds, the first.
    bounds = _bounds(problem, until, refined_until, core)
    tightest = max(_begun_by(until, problem, bounds), key=_value)
    return Bound(_rounded(problem, tightest.value), tightest.name)


def bound_name(problem: Problem, value: float, until: float) -> str | None:
    """The name of the bound with a value, such as that of a plan's file.

    Args:
        problem: of the plan.
        value: of the bound.
        until: time of `time.perf_counter` after which no other bound starts.

    Returns:
        The first bound with that value; None if no bound has it, or none was found in time.
    """
    if problem.objective == "memory":
        values = ((float(need.peak), need.name) for need in needs(problem, until))
    else:
        bounds = _begun_by(until, problem, _bounds(problem, until, until))
        values = ((_rounded(problem, bound.value), bound.name) for bound in bounds)
    return next((name for size, name in values if size == value), None)


def _value(bound: Bound) -> float:
    return bound.value


def _begun_by(until: float, problem: Problem, bounds: Iterator[Bound]) -> Iterator[Bound]:
    """The bounds that start before `until`; an equal share of the work stands for the others."""
    atomic = problem.transfers == "atomic"
    if atomic:
        yield next(bounds)
    while time.perf_counter() < until:
        if (bound := next(bounds, None)) is None:
            return
        yield bound
    if not atomic:
        yield Bound(float(problem.fastest.sum()) / problem.d, "load")


def _bounds(
    problem: Problem,
    until: float,
    refined_until: float,
    core: _core.problem.Problem | None = None,
) -> Iterator[Bound]:
    if problem.objective == "throughput":
        yield from _on_throughput(problem, until)
    else:
        yield from _on_time(problem, until, refined_until, core)
    yield Bound(least_split(problem, refined_until), "split")


def _on_throughput(problem: Problem, until: float) -> Iterator[Bound]:
    yield Bound(least_load(problem, until).seconds, "load")
    yield Bound(least_narrow(problem, Paths.without(problem)), "narrow work")
    yield Bound(float(problem.fastest.max()), "longest op")
    yield Bound(least_group(problem, Paths.without(problem)), "colocation group")


def _on_time(
    problem: Problem,
    until: float,
    refined_until: float,
    core: _core.problem.Problem | None,
) -> Iterator[Bound]:
    paths = Paths.of(problem, core)
    least = paths.longest
    yield Bound(paths.longest, "critical path")
    if problem.transfers == "atomic":
        return
    paths = with_joins(problem, paths, refined_until, core)
    load = least_load(problem, until)
    for bound in _of_paths(problem, paths, load):
        least = max(least, bound.value)
        yield bound
    yield Bound(least_deadline(problem, least, load, refined_until), "deadline")


def _of_paths(problem: Problem, paths: Paths, load: Load) -> Iterator[Bound]:
    yield Bound(load.seconds, "load")
    yield Bound(least_window(problem, paths, load), "window")
    yield Bound(least_narrow(problem, paths), "narrow work")
    yield Bound(least_together(problem, paths), "together")
    yield Bound(paths.longest, "joins")
    yield Bound(least_group(problem, paths), "colocation group")


def _rounded(problem: Problem, seconds: float) -> float:
    """A bound minus the largest rounding error, so that it holds for exact sums.

    If all times are whole numbers, the bound is rounded up to one.
    """
    least = seconds * (1 - rounding(problem)) - SMALLEST_TIME * (problem.n + problem.d)
    return float(np.ceil(max(0.0, least))) if _whole_numbers(problem) else max(0.0, least)


def _whole_numbers(problem: Problem) -> bool:
    """True if every possible time of a schedule is a whole number."""
    own = problem.transfer_seconds
    # NaN marks tensors without seconds of their own. Links give their transfers' times, which are
    # whole numbers only if links take no time at all.
    links_count = bool((np.isnan(own) & ~problem.signal).any())
    links_free = not problem.latency.any() and bool(np.isinf(problem.bandwidth).all())
    times = [problem.seconds.ravel(), own, np.array([problem.cluster.synchronisation])]
    # A few times first: if some times are no whole numbers, most are none.
    parts = [t[:FEW] for t in times] + [t[FEW:] for t in times]
    whole = all(_are_whole(part) for part in parts)
    return whole and (links_free or not links_count)


def _are_whole(times: NDArray[np.float64]) -> bool:
    """True if all finite times are whole numbers."""
    finite = times[np.isfinite(times)]
    return bool((finite == np.floor(finite)).all())
