"""`heft`: heterogeneous earliest finish time (Topcuoglu et al., IEEE TPDS 13(3), 2002)."""

from __future__ import annotations

from situate import _core
from situate.solvers.search import Search

MEMORY_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Shares of the devices' memory that a list rule plans to fill, tried in turn until the plan fits.
The rest is for bytes that the rule cannot foresee."""


def run(search: Search) -> None:
    """Ops by upward rank (Eq. 8), each on the device where it ends first (section 4.2).

    Channels are busy while they carry a tensor, devices that lack memory come last, and a group
    follows its first op.
    """
    for room in MEMORY_SHARES:
        placement, order = _core.search.heft(search.simulator.core, room, search.seconds_left())
        if search.offer(placement, order).feasible or search.budget.out_of_evaluations():
            return
