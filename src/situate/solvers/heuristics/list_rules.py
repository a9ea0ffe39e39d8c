"""List rules, which place one op after the other: `heft`, `etf`, `m_etf` and `m_sct`.

The loops over ops are in the core.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from situate import _core
from situate.data.arrays import Order, Placement
from situate.data.topology import accelerators
from situate.solvers.heuristics.favourite_children import favourite_children
from situate.solvers.search import Search

MEMORY_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Shares of the devices' memory that a list rule plans to fill, tried in turn until the plan fits.
The rest is for bytes that the rule cannot foresee."""


Rule = Callable[[float], tuple[Placement, Order]]
"""A decision that fills at most this share of the devices' memory."""


def heft(search: Search) -> None:
    """Heterogeneous earliest finish time (Topcuoglu et al., IEEE TPDS 13(3), 2002): ops by upward
    rank (Eq. 8), each on the device where it ends first (section 4.2).

    Channels are busy while they carry a tensor, devices that lack memory come last, and a group
    follows its first op.
    """
    core = search.simulator.core
    _offer_until_it_fits(search, lambda room: _core.search.heft(core, room, search.seconds_left()))


def etf(search: Search) -> None:
    """Earliest task first (Hwang et al., SIAM J. Computing 18(2), 1989): take the pair of a ready
    op and a device that can start first; ties go to the higher rank.

    Each device has two heaps: ops whose inputs are in transit to it, and ops that wait for it.
    """
    core = search.simulator.core
    _offer_until_it_fits(search, lambda room: _core.search.etf(core, room, search.seconds_left()))


def m_etf(search: Search) -> None:
    """Baechi's m-ETF (Jeon et al., SoCC 2020): take the pair of a ready op and an accelerator with
    memory for it that can start first."""
    offer_earliest(search, np.full(search.problem.n, -1, np.int32))


def offer_earliest(search: Search, favourite: Order) -> None:
    """Offer the plan of `m_etf`, for ever smaller shares of the devices' memory until one fits.

    Args:
        favourite: (n,) the favourite child of each op, which its device waits for; -1 for none.
    """
    preferred = np.zeros(search.problem.d, np.uint8)
    preferred[accelerators(search.problem)] = 1

    def rule(room: float) -> tuple[Placement, Order]:
        return _core.search.memory_constrained(
            search.simulator.core,
            room,
            preferred=preferred,
            favourite=favourite,
            seconds=search.seconds_left(),
        )

    _offer_until_it_fits(search, rule)


def _offer_until_it_fits(search: Search, rule: Rule) -> None:
    """Offer the rule's plans for ever less room, until one fits or is no shorter than the
    incumbent: less room seldom shortens a step."""
    by_time = search.problem.objective == "time"
    for room in MEMORY_SHARES:
        candidate = search.offer(*rule(room))
        best = search.incumbent
        no_shorter = by_time and best.feasible and candidate.value >= best.value
        if candidate.feasible or no_shorter or search.budget.out_of_evaluations():
            return


def m_sct(search: Search) -> None:
    """Baechi's m-SCT (Jeon et al., SoCC 2020, after Hanen and Munier, 1995): as `m_etf`, with
    devices that wait for the favourite children of their ops.

    Raises:
        MissingExtra: highspy is not installed.
    """
    seconds = (
        None
        if search.budget.time_limit is None
        else search.budget.time_limit * search.budget.remaining()
    )
    offer_earliest(search, favourite_children(search.problem, seconds))
