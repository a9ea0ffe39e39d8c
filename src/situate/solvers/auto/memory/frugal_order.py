"""The order in which plans are tried beside their own for memory."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.topology import edge_tensors, places, topological_by
from situate.data.tree_order import SECONDS_AN_OP, tree_order
from situate.solvers.search import Search

TREE_SHARE = 0.1
"""Share of the time left that the order of a tree may take at most."""


def frugal_order(search: Search) -> Order:
    """(n,) ops depth first, along the heaviest paths from either end, or as if each were read but
    once, whichever needs least memory on one device; not the last where there is no time for it."""
    problem, limit, core = search.problem, search.time_limit, search.simulator.core
    orders = [problem.depth_first]
    orders += [_core.heavy_path_order(core, backwards) for backwards in (False, True)]
    if limit is None or SECONDS_AN_OP * problem.n <= TREE_SHARE * (limit - search.seconds):
        # What is read twice may come behind a reader.
        orders.append(topological_by(problem, places(tree_order(problem).order)))
    return min(orders, key=lambda order: bytes_in_use(problem, order))


def bytes_in_use(problem: Problem, order: Order) -> int:
    """Bytes of tensors and workspaces at the fullest moment on one device."""
    place = places(order)
    begin = place[problem.producer]
    end = begin.copy()
    np.maximum.at(end, edge_tensors(problem), place[problem.consumers])
    end[problem.output == 1] = problem.n - 1
    # (n + 1,) bytes that come as the op of each place begins, less those that went before it.
    size, change = np.where(problem.resident == 1, 0, problem.size), np.zeros(problem.n + 1, int)
    np.add.at(change, begin, size)
    np.subtract.at(change, end + 1, size)
    return int((np.cumsum(change)[:-1] + problem.workspace[order]).max())
