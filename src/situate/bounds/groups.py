"""Colocation groups: the ops of one run on one device, one after the other."""

from __future__ import annotations

import numpy as np

from situate.bounds.paths import Paths
from situate.data.arrays import Floats
from situate.data.problem import Problem


def least_group(problem: Problem, paths: Paths) -> float:
    """Lower bound on the seconds of a step with a unit alone on its device.

    The unit occupies the device from the earliest start to the latest end of its ops.
    """
    first, last = np.full((2, problem.units), np.inf)
    np.minimum.at(first, problem.unit, paths.head)
    np.minimum.at(last, problem.unit, paths.tail)
    return float((first + seconds_of_units(problem).min(axis=1) + last).max())


def seconds_of_units(problem: Problem) -> Floats:
    """(units, d) seconds of all ops of a unit; infinite on forbidden devices."""
    return np.where(problem.allowed, problem.unit_seconds, np.inf)
