"""`heavy-edge`: merge the units that exchange most bytes, until there are few enough groups.

Contraction of heavy edges (B. Hendrickson, R. Leland, *A Multilevel Algorithm for Partitioning
Graphs*, Supercomputing 1995), one edge at a time, with a limit on a group's seconds. An edge's
weight is that of M. Holtgrewe, P. Sanders, C. Schulz, *Engineering a Scalable High Quality Graph
Partitioner*, IPDPS 2010, section 3: bytes squared over the product of the two groups' seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.problem import Problem
from situate.grouping.units import unit_graph

MAX_RELATIVE_SECONDS = 1.5
"""Largest ratio of a group's seconds to the average group's, if that is possible."""


FINE_GROUPS_FACTOR = 10
"""Groups of the common fine partition, per group of the largest requested partition."""


def labels(
    problem: Problem, count: int, seconds: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Labels (units,) of `count` groups.

    There are fewer groups if there are fewer units, and more if the remaining groups share no
    device.

    Args:
        seconds: (units,) to balance; None for those on the units' fastest devices.
    """
    # (1, units) to (units,). A fine partition of `units` groups is the units themselves, so
    # contraction starts from them.
    return _contracted(problem, (count,), problem.units, seconds).reshape(problem.units)


def partitions(
    problem: Problem, counts: Sequence[int], seconds: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Labels (c, units) of partitions with the requested numbers of groups.

    All come from one fine partition, so that many take little longer than one; `seconds` is as in
    `labels`.
    """
    return _contracted(problem, counts, FINE_GROUPS_FACTOR * max(counts, default=1), seconds)


def _contracted(
    problem: Problem, counts: Sequence[int], fine: int, seconds: NDArray[np.float64] | None
) -> NDArray[np.int64]:
    graph = unit_graph(problem).in_core(problem, seconds)
    return _core.partition.coarsen(
        graph, counts=np.array(counts, np.int64), fine=fine, most=MAX_RELATIVE_SECONDS
    )
