"""Joins: an op can start early only on the device of the inputs whose transfers would come too
late. The producers of these inputs run on that device one after the other.

C. Papadimitriou, M. Yannakakis, "Towards an Architecture-Independent Analysis of Parallel
Algorithms", SIAM Journal on Computing 19(2), 1990, for ops, transfers and devices that differ.
"""

from __future__ import annotations

import math
import time

from situate import _core
from situate.bounds.paths import Paths
from situate.data.core_problem import core_problem
from situate.data.problem import Problem

WORK = 20_000_000
"""Edges that are looked at for the sake of others, in a fifth of a second or so."""


def with_joins(problem: Problem, paths: Paths, until: float = math.inf) -> Paths:
    """The paths, with longer heads and tails at joins; the search ends when `time.perf_counter`
    reaches `until`."""
    seconds = until - time.perf_counter()
    if seconds <= 0 or problem.d < 2:
        return paths
    heads, tails = _core.bounds.with_joins(
        core_problem(problem), paths.heads, paths.tails, work=WORK, seconds=seconds
    )
    return Paths.through(problem, heads, tails)
