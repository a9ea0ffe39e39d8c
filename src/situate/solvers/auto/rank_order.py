"""The order by upward rank, in which plans are tried beside their own for time."""

from __future__ import annotations

from situate import _core
from situate.data.arrays import Order
from situate.simulation.decoding import rising
from situate.solvers.search import Search


def by_rank(search: Search) -> Order:
    """Ops by upward rank, the highest first (Topcuoglu et al., HEFT, IEEE TPDS 13(3), 2002, Eq. 8);
    a topological order, for no op takes less than no time.

    A graph lists a layer of an unrolled network at all its steps before the next layer. Run in that
    order, a device with a part of both keeps those waiting that need the next layer's first steps.
    """
    return rising(search.problem, -_core.upward_rank(search.simulator.core))
