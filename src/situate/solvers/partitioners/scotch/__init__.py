"""`scotch`: Scotch's static mapping of the graph onto the machine, CPUs and all."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Placement
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.partitioners.scotch.files import source_file, target_file
from situate.solvers.partitioners.scotch.programs import static_mapping
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Offer one plan: Scotch's static mapping of the graph onto all devices.

    Raises:
        SituateError: Scotch is not installed, or its program fails.
    """
    problem = search.problem
    placement = map_onto(Mapping.onto(problem, list(range(problem.d))))
    search.offer(placement, np.array(problem.graph.order, np.int32))


def map_onto(mapping: Mapping) -> Placement:
    """Placement (n,) of the ops on the devices of the mapping."""
    processor = static_mapping(
        source_file(mapping),
        target_file(mapping),
        vertices=len(mapping.load),
        processors=len(mapping.devices),
    )
    return mapping.placement(processor)
