"""`metis`: balanced groups with few bytes between them, cut by METIS.

G. Karypis, V. Kumar, *A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs*,
SIAM Journal on Scientific Computing 20(1), 1998. Seconds are the weights of vertices, bytes those
of edges. METIS knows no devices, so incompatible units are split afterwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.grouping.bisection import WeightedGraph, as_integers, partition
from situate.grouping.units import unit_graph


def labels(problem: Problem, count: int) -> NDArray[np.int64]:
    """Labels (units,) of at most `count` parts of about equal seconds.

    Raises:
        MissingExtra: pymetis is not installed.
    """
    if count >= problem.units:
        return np.arange(problem.units)
    units = unit_graph(problem)
    graph = WeightedGraph(
        rows=np.repeat(np.arange(len(units)), np.diff(units.start)),
        neighbour=units.neighbour,
        weight=as_integers(units.bytes),
        load=as_integers(units.seconds),
    )
    return partition(graph, np.ones(count))
