"""Orders in which plans are tried beside their own: for time and for memory."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.topology import edge_tensors, places, topological_by
from situate.data.tree_order import SECONDS_AN_OP, tree_order
from situate.simulation.decoding import rising
from situate.solvers.search import Search

TREE_SHARE = 0.1
"""Share of the time left that the order of a tree may take at most."""


def by_rank(search: Search) -> Order:
    """Ops by upward rank, the highest first (Topcuoglu et al., HEFT, IEEE TPDS 13(3), 2002, Eq. 8);
    a topological order, for no op takes less than no time.

    A graph lists a layer of an unrolled network at all its steps before the next layer. Run in that
    order, a device with a part of both keeps those waiting that need the next layer's first steps.
    """
    return rising(search.problem, -_core.upward_rank(search.simulator.core))


def frugal_order(search: Search) -> Order:
    """(n,) ops depth first, or as if each were read but once, whichever needs less memory on one
    device; depth first where there is no time to know."""
    problem, limit = search.problem, search.time_limit
    depth_first = problem.depth_first
    if limit is not None and SECONDS_AN_OP * problem.n > TREE_SHARE * (limit - search.seconds):
        return depth_first
    # What is read twice may come behind a reader.
    as_tree = topological_by(problem, places(tree_order(problem).order))
    return min(depth_first, as_tree, key=lambda order: _fullest(problem, order))


def _fullest(problem: Problem, order: Order) -> int:
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
