"""Narrow work: windows of ops that may run only on some devices."""

from __future__ import annotations

import numpy as np

from situate.bounds.device_sets import DeviceSets
from situate.bounds.paths import Paths
from situate.bounds.windows import fullest_window
from situate.data.arrays import Bools
from situate.data.problem import Problem

SETS = 64
"""Most sets of devices with a window; the sets of most ops come first."""


def least_narrow(problem: Problem, paths: Paths) -> float:
    """Lower bound on the seconds of a step by the fullest window of ops confined to some devices,
    which share the work evenly."""
    sets, head, tail = DeviceSets.of(problem), paths.head, paths.tail
    allowed = problem.allowed[problem.unit]
    least = np.where(allowed, problem.seconds, np.inf).min(axis=1)
    longest = 0.0
    for on in narrow_sets(sets):
        within = np.all(sets.sets <= on, axis=1)
        ops = within[sets.of_unit][problem.unit]
        longest = max(longest, fullest_window(head[ops], tail[ops], least[ops] / on.sum()))
    return longest


def narrow_sets(sets: DeviceSets) -> list[Bools]:
    """Proper subsets (d,) of the devices to which some units are confined."""
    return [on for on in sets.sets if not on.all()][:SETS]
