"""The bytes that a tree of ops needs at once; docs/bounds.md derives them."""

from __future__ import annotations

import math
import time

from situate.bounds.live import all_take_time
from situate.data.problem import Problem
from situate.data.tree_order import SECONDS_AN_OP, is_tree, tree_order


def bytes_of_tree(problem: Problem, until: float = math.inf) -> int:
    """Bytes of tensors and workspaces that are live at once in every schedule of a tree of ops.

    They are 0 if some op has several readers, if an op without duration needs bytes, or if
    `time.perf_counter` reaches `until` first.
    """
    if time.perf_counter() + SECONDS_AN_OP * problem.n > until or not is_tree(problem):
        return 0
    return tree_order(problem).bytes if all_take_time(problem) else 0
