"""Sources without work: parameters, inputs and the like, which are there before the step begins."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Bools
from situate.data.problem import Problem


def idle_sources(problem: Problem) -> Bools:
    """(n,) whether an op reads nothing and takes no time on any device that can run it."""
    idle = np.asarray((~np.isfinite(problem.seconds) | (problem.seconds == 0)).all(axis=1))
    idle[problem.consumers] = False
    return idle
