"""Deadlines: a step is refuted if some op cannot meet the step's end.

R. Klein, A. Scholl, "Computing lower bounds by destructive improvement: An application to
resource-constrained project scheduling", EJOR 112(2), 1999.
"""

from __future__ import annotations

import math
import time

import numpy as np

from situate.bounds.load import Load
from situate.bounds.paths import Paths, with_joins
from situate.bounds.together import busiest, can_part, least_group, parted, united
from situate.bounds.windows import least_window
from situate.data.problem import Problem

STEP, PRECISION = 0.01, 0.001
"""First and smallest relative increase of the deadline over the last refuted one."""

ROUNDS = 8
"""Most rounds of deriving consequences from earlier consequences."""


def least_deadline(problem: Problem, least: float, load: Load, until: float = math.inf) -> float:
    """Lower bound on the seconds of a step; every shorter step is refuted. It is at least `least`.

    Args:
        problem: a graph on a cluster.
        least: a lower bound on the seconds of a step.
        load: the bound on the busiest device.
        until: time of `time.perf_counter` at which the refutation ends.
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
    """True if no step can end by the deadline."""
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
    """The problem under a deadline.

    An op loses the devices on which it would end late. Units share a device if a transfer between
    them would end late.
    """
    seconds = np.where(problem.allowed[problem.unit], problem.seconds, np.inf)
    in_time = problem.allowed.copy()
    # A unit may run where all its ops end in time.
    np.logical_and.at(in_time, problem.unit, paths.heads + seconds + paths.tails <= deadline)
    through, ends = parted(problem, paths)
    return problem.confined(united(problem, ends[through > deadline]), in_time)
