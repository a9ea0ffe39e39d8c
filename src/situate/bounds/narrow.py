"""Narrow work: ops that only some devices may run have a window of those devices alone."""

from __future__ import annotations

import numpy as np

from situate.bounds.device_sets import DeviceSets
from situate.bounds.load import Load
from situate.bounds.paths import Paths
from situate.bounds.windows import least_window
from situate.data.arrays import Bools
from situate.data.problem import Problem

SETS = 64
"""At most so many sets of devices are looked at, those of most ops first."""


def least_narrow(problem: Problem, paths: Paths) -> float:
    """Seconds of a step by the fullest window of ops that only certain devices may run, which these
    share evenly."""
    price = np.zeros(problem.d)
    loads = (Load(0.0, on / on.sum(), price) for on in narrow_sets(problem))
    return max((least_window(problem, paths, load) for load in loads), default=0.0)


def narrow_sets(problem: Problem) -> list[Bools]:
    """Sets of devices (d,), not all of them, that are all that some units may run on."""
    return [on for on in DeviceSets.of(problem).sets if not on.all()][:SETS]
