"""`mincut`: Scotch's static mapping of the graph onto the accelerators alone."""

from __future__ import annotations

import numpy as np

from situate.data.topology import accelerators
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.partitioners.scotch import map_onto
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Offer one plan: as `scotch`, without the CPUs.

    Raises:
        SituateError: Scotch is not installed, or its program fails.
    """
    problem = search.problem
    placement = map_onto(Mapping.onto(problem, accelerators(problem)))
    search.offer(placement, np.array(problem.graph.order, np.int32))
