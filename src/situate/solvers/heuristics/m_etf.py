"""`m_etf`: Baechi's m-ETF, earliest task first on devices of finite memory (Jeon et al., 2020)."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.data.arrays import Order
from situate.data.topology import accelerators
from situate.solvers.heuristics.heft import MEMORY_SHARES
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Take the pair of a ready op and an accelerator with memory for it that can start first."""
    offer_earliest(search, np.full(search.problem.n, -1, np.int32))


def offer_earliest(search: Search, favourite: Order) -> None:
    """Offer the rule's plan, for ever smaller shares of the devices' memory until one fits.

    Args:
        favourite: (n,) the favourite child of each op, which its device waits for; -1 for none.
    """
    preferred = np.zeros(search.problem.d, np.uint8)
    preferred[accelerators(search.problem)] = 1
    for room in MEMORY_SHARES:
        placement, order = _core.search.memory_constrained(
            search.simulator.core,
            room,
            preferred=preferred,
            favourite=favourite,
            seconds=search.seconds_left(),
        )
        if search.offer(placement, order).feasible or search.budget.out_of_evaluations():
            return
