"""The order by upward rank, the second order of plans for the objective time."""

from __future__ import annotations

from situate import _core
from situate.data.arrays import Order
from situate.simulation.decoding import rising
from situate.solvers.search import Search


def by_rank(search: Search) -> Order:
    """Ops by upward rank, the highest first (Topcuoglu et al., HEFT, IEEE TPDS 13(3), 2002, Eq. 8).

    It is a topological order because durations are not negative. The graph's order of an unrolled
    network runs all steps of a layer before the next layer. A device with parts of both layers then
    delays the readers of the next layer's first steps.
    """
    return rising(search.problem, -_core.search.upward_rank(search.simulator.core))
