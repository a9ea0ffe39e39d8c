"""`heavy-edge`: what exchanges most bytes comes together, until there are few enough groups.

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
from situate.grouping.unit_graph import unit_graph

MAX_RELATIVE_SECONDS = 1.5
"""Seconds of a group over those of an average group, at most, where that can be."""


FINE_GROUPS_FACTOR = 10
"""Groups of the partition that several are made of, for each group of the largest."""


def labels(
    problem: Problem, count: int, seconds: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Labels (units,) of `count` groups: fewer if there are fewer units, more if units that share
    no device leave no other way.

    Args:
        seconds: (units,) to balance; None for those on the units' fastest devices.
    """
    # (1, units) to (units,). A fine partition of `units` groups is the units themselves, so
    # contraction starts from them.
    return _contracted(problem, (count,), problem.units, seconds).reshape(problem.units)


def partitions(
    problem: Problem, counts: Sequence[int], seconds: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Labels (c, units) of partitions into so many groups each, all made of one fine partition, so
    that many take little longer than one; `seconds` as in `labels`."""
    return _contracted(problem, counts, FINE_GROUPS_FACTOR * max(counts, default=1), seconds)


def _contracted(
    problem: Problem, counts: Sequence[int], fine: int, seconds: NDArray[np.float64] | None
) -> NDArray[np.int64]:
    graph = unit_graph(problem).in_core(problem, seconds)
    return _core.coarsen(
        graph, counts=np.array(counts, np.int64), fine=fine, most=MAX_RELATIVE_SECONDS
    )
