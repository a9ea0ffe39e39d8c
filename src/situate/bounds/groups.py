"""Colocation groups: the ops of one run on one device, one after the other."""

from __future__ import annotations

import numpy as np

from situate.bounds.paths import Paths
from situate.data.arrays import Floats
from situate.data.problem import Problem


def least_group(problem: Problem, paths: Paths) -> float:
    """Seconds of a step in which a unit has its device to itself between the first of its ops that
    can begin and the last that must end."""
    first, last = np.full((2, problem.units), np.inf)
    np.minimum.at(first, problem.unit, paths.head)
    np.minimum.at(last, problem.unit, paths.tail)
    return float((first + seconds_of_units(problem).min(axis=1) + last).max())


def seconds_of_units(problem: Problem) -> Floats:
    """(units, d) of all ops of a unit; infinite where it may not run."""
    return np.where(problem.allowed, problem.unit_seconds, np.inf)
