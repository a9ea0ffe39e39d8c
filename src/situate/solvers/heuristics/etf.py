"""`etf`: earliest task first (Hwang et al., SIAM J. Computing 18(2), 1989)."""

from __future__ import annotations

from situate import _core
from situate.solvers.heuristics.heft import MEMORY_SHARES
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Take the pair of a ready op and a device that can start first; ties go to the higher rank.

    Each device has two heaps: ops whose inputs are in transit to it, and ops that wait for it.
    """
    for room in MEMORY_SHARES:
        placement, order = _core.search.etf(search.simulator.core, room, search.seconds_left())
        if search.offer(placement, order).feasible or search.budget.out_of_evaluations():
            return
