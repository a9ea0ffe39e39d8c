"""Lower bounds on the objective; docs/bounds.md derives them."""

from __future__ import annotations

import math

import numpy as np

from situate.bounds.load import least_load
from situate.bounds.memory import least_peak
from situate.bounds.narrow import least_narrow
from situate.bounds.paths import Paths
from situate.bounds.rounding import rounding
from situate.bounds.windows import least_window
from situate.data.problem import Problem

SMALLEST_TIME = float(np.finfo(np.float64).smallest_subnormal)
"""What a product of times as small as this may be off by, which no relative error covers."""


def lower_bound(problem: Problem, until: float = math.inf) -> float:
    """No feasible plan of the problem has a smaller value. Seconds, or bytes for `memory`.

    Args:
        problem: what is to be planned.
        until: what `time.perf_counter` says when the ascent for the load ends, were it not at its
            best by then.
    """
    if problem.objective == "memory":
        return float(least_peak(problem))
    if problem.objective == "throughput":
        narrow = least_narrow(problem, Paths.without(problem))
        bound = max(least_load(problem, until).seconds, float(problem.fastest.max()), narrow)
    else:
        bound = _least_time(problem, until)
    # Lowered by all that rounding may have added, so that the bound holds for exact sums.
    bound = max(0.0, bound * (1 - rounding(problem)) - SMALLEST_TIME * (problem.n + problem.d))
    return float(np.ceil(bound)) if _whole_numbers(problem) else bound


def _least_time(problem: Problem, until: float) -> float:
    paths = Paths.of(problem)
    if problem.transfers == "atomic":
        return paths.longest
    load = least_load(problem, until)
    narrow = least_narrow(problem, paths)
    return max(paths.longest, load.seconds, least_window(problem, paths, load), narrow)


def _whole_numbers(problem: Problem) -> bool:
    """True if every time a schedule can hold is a whole number."""
    own = problem.transfer_seconds
    # NaN marks tensors without seconds of their own, whose transfers take what links say: whole
    # numbers only where links take no time at all.
    links_count = bool((np.isnan(own) & (problem.size > 0)).any())
    links_free = not problem.latency.any() and bool(np.isinf(problem.bandwidth).all())
    times = [problem.seconds[np.isfinite(problem.seconds)], own[~np.isnan(own)]]
    times.append(np.array([problem.cluster.synchronisation]))
    whole = all(bool((t == np.floor(t)).all()) for t in times)
    return whole and (links_free or not links_count)
