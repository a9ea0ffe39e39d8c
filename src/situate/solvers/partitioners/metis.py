"""`metis`: as many balanced parts as accelerators, with few bytes between them."""

from __future__ import annotations

import numpy as np

from situate.data.topology import accelerators
from situate.grouping.bisection import WeightedGraph, as_integers, partition
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Offer one plan: METIS's partition of the graph, with part i on accelerator i.

    Raises:
        MissingExtra: pymetis is not installed.
    """
    problem = search.problem
    mapping = Mapping.onto(problem, accelerators(problem))
    units = mapping.graph
    graph = WeightedGraph(
        rows=np.repeat(np.arange(len(units)), np.diff(units.start)),
        neighbour=units.neighbour,
        weight=as_integers(units.bytes),
        load=as_integers(mapping.load),
    )
    placement = mapping.placement(partition(graph, mapping.speed))
    search.offer(placement, np.array(problem.graph.order, np.int32))
