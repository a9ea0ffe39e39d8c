"""Sources without work, such as parameters and inputs, which exist before the step begins."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Bools
from situate.data.problem import Problem


def idle_sources(problem: Problem) -> Bools:
    """(n,) True for ops that read nothing and take no time on any device that can run them."""
    idle = np.asarray((~np.isfinite(problem.seconds) | (problem.seconds == 0)).all(axis=1))
    idle[problem.consumers] = False
    return idle
