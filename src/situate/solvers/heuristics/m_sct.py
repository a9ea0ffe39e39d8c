"""`m_sct`: Baechi's m-SCT, small communication times on devices of finite memory (Jeon et al., SoCC
2020, after Hanen and Munier, 1995)."""

from __future__ import annotations

from situate.solvers.heuristics.favourite_children import favourite_children
from situate.solvers.heuristics.m_etf import offer_earliest
from situate.solvers.search import Search


def run(search: Search) -> None:
    """As `m_etf`, with devices that wait for the favourite children of their ops.

    Raises:
        MissingExtra: highspy is not installed.
    """
    seconds = (
        None
        if search.budget.time_limit is None
        else search.budget.time_limit * search.budget.remaining()
    )
    offer_earliest(search, favourite_children(search.problem, seconds))
