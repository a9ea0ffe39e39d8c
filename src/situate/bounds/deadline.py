"""Deadlines: a step that is refuted, for by its end nothing can be where it has to be.

R. Klein, A. Scholl, "Computing lower bounds by destructive improvement: An application to
resource-constrained project scheduling", EJOR 112(2), 1999.
"""

from __future__ import annotations

import math
import time

import numpy as np

from situate.bounds.groups import least_group
from situate.bounds.joins import with_joins
from situate.bounds.load import Load
from situate.bounds.paths import Paths
from situate.bounds.together import busiest, can_part, parted, united
from situate.bounds.windows import least_window
from situate.data.problem import Problem

STEP, PRECISION = 0.01, 0.001
"""By how much a step is longer than the last one that was refuted, at first and at least."""

ROUNDS = 8
"""Most times that what a step forces is derived from what it has forced before."""


def least_deadline(problem: Problem, least: float, load: Load, until: float = math.inf) -> float:
    """Seconds of a step; all that are shorter are refuted by what they force on ops. No less than
    those that are known.

    Args:
        problem: a graph on a cluster.
        least: seconds that no step is shorter than.
        load: the bound on the busiest device.
        until: what `time.perf_counter` says when no more is derived.
    """
    if not can_part(problem) or least == 0:
        return least
    step = STEP
    while step >= PRECISION and time.perf_counter() < until:
        if _too_short(problem, least * (1 + step), load, until):
            least, step = least * (1 + step), step * 2
        else:
            step /= 2
    return least


def _too_short(problem: Problem, deadline: float, load: Load, until: float) -> bool:
    """True if it is shown that no step ends by the deadline."""
    for _ in range(ROUNDS):
        paths = with_joins(problem, Paths.of(problem), until)
        if max(paths.longest, least_group(problem, paths), busiest(problem)) > deadline:
            return True
        forced = _forced(problem, paths, deadline)
        if not forced.allowed.any(axis=1).all():
            return True
        if forced.units == problem.units and np.array_equal(forced.allowed, problem.allowed):
            return least_window(problem, paths, load) > deadline
        if time.perf_counter() >= until:
            return False
        problem = forced
    return False


def _forced(problem: Problem, paths: Paths, deadline: float) -> Problem:
    """The problem without the devices on which an op would end after the deadline, with units that
    share one where a transfer between them would end after it."""
    seconds = np.where(problem.allowed[problem.unit], problem.seconds, np.inf)
    in_time = problem.allowed.copy()
    np.logical_and.at(in_time, problem.unit, paths.heads + seconds + paths.tails <= deadline)
    through, ends = parted(problem, paths)
    return problem.confined(united(problem, ends[through > deadline]), in_time)
