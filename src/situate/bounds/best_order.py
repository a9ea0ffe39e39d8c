"""The bytes that few ops need at once in their best order; docs/bounds.md derives them."""

from __future__ import annotations

import math
import time

from situate import _core
from situate.bounds.live import all_take_time
from situate.data.core_problem import core_problem
from situate.data.problem import Problem

SETS, SECONDS = 20_000, 0.1
"""Sets of ops to look at, and seconds that they take at most."""


def bytes_of_best_order(problem: Problem, until: float = math.inf) -> int:
    """Bytes of tensors and workspaces that are live at once in every schedule.

    They are 0 for more than 64 ops, if `SETS` are not enough, if an op without duration needs
    bytes, or if `time.perf_counter` reaches `until` first.
    """
    if time.perf_counter() + SECONDS > until or not all_take_time(problem):
        return 0
    return _core.search.least_order_peak(core_problem(problem), SETS) or 0
