"""The second order of plans for the objective memory."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.topology import edge_tensors, places, topological_by
from situate.data.tree_order import SECONDS_AN_OP, tree_order
from situate.solvers.search import Search

TREE_SHARE = 0.1
"""Largest share of the remaining time for the order of a tree."""


def frugal_order(search: Search) -> Order:
    """(n,) the order with the least peak memory on one device, of several.

    They are depth-first, along the heaviest paths from either end and, if there is time, optimal
    for the tree in which each op has one reader.
    """
    problem, limit, core = search.problem, search.budget.time_limit, search.simulator.core
    orders = [problem.depth_first]
    orders += [_core.search.heavy_path_order(core, backwards) for backwards in (False, True)]
    if limit is None or SECONDS_AN_OP * problem.n <= TREE_SHARE * (limit - search.budget.seconds):
        # An op with several readers may follow one of them in the tree, so the order is repaired.
        orders.append(topological_by(problem, places(tree_order(problem).order)))
    return min(orders, key=lambda order: bytes_in_use(problem, order))


def bytes_in_use(problem: Problem, order: Order) -> int:
    """Peak bytes of tensors and workspaces if all ops run on one device."""
    place = places(order)
    begin = place[problem.producer]
    end = begin.copy()
    np.maximum.at(end, edge_tensors(problem), place[problem.consumers])
    end[problem.output == 1] = problem.n - 1
    # (n + 1,) change of live bytes at each place: allocated less freed bytes.
    size, change = np.where(problem.resident == 1, 0, problem.size), np.zeros(problem.n + 1, int)
    np.add.at(change, begin, size)
    np.subtract.at(change, end + 1, size)
    return int((np.cumsum(change)[:-1] + problem.workspace[order]).max())
