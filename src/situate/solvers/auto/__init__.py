"""`auto`: constructed plans, the best of which is improved until the budget ends.

    construct   rules, coarse problems, enumeration, cuts, random plans, pipelines
        |
    repair      while nothing fits: annealing for memory
        |
    improve     climbing, then annealing; balancing for throughput
        |
    finish      cleanup, and one device if several gain too little

Each phase is one function of the search. `docs/methods/auto.md` gives the purpose of each part.
"""

from __future__ import annotations

from contextlib import suppress

from situate.simulation.decoding import order_of
from situate.solvers.auto.coarse import plan_coarse
from situate.solvers.auto.construct import construct
from situate.solvers.auto.finish import finish
from situate.solvers.auto.improve import improve, shorten
from situate.solvers.auto.improve.balance import orders_count
from situate.solvers.auto.islands import Islands, islands
from situate.solvers.auto.orders import second_order
from situate.solvers.auto.repair import repair
from situate.solvers.budget import OutOfTime
from situate.solvers.search import Search

CLEANUP_SHARE = 0.05
"""Share of the budget reserved for the cleanup."""

TIME_SEARCH_SHARE = 0.4
"""Share of the remaining budget that a search for throughput gives to a search for time if the
order of ops decides what fits."""

LEFT_FOR_RULES = 0.5
"""That search also runs the rules if this share of the budget remains after them."""


def run(search: Search) -> None:
    """Plan in all phases, until the budget ends."""
    with (
        suppress(OutOfTime),
        search.budget.reserving(CLEANUP_SHARE),
        islands(search, improve) as others,
    ):
        _plan(search, others=others)
    with suppress(OutOfTime):
        finish(search)


def _plan(search: Search, for_loads: bool = False, others: Islands | None = None) -> None:
    """Construct, repair and improve.

    Args:
        for_loads: True if the plan is a start for throughput. Critical moves, which balance no
            loads, are then left out.
        others: islands that improve the plan instead of this process.
    """
    problem = search.problem
    search.keep_to_limit()
    with search.trying(second_order(search)):
        full = construct(search, _plan_coarse, others.start if others is not None else None)
    if full is None or search.finished():
        return
    if problem.objective == "throughput" and orders_count(problem):
        _offer_shortest_step(search)
    repair(search)
    full = full and not for_loads
    if others is None or not others.improve(full):
        improve(search, True, full)


def _plan_coarse(search: Search) -> None:
    """Plan a large graph as far fewer ops; on the coarsest level in all phases."""
    plan_coarse(search, _plan, shorten)


def _offer_shortest_step(search: Search) -> None:
    """Offer the result of a search for time, whose order may fit when the graph's does not."""
    for_time = search.for_time(TIME_SEARCH_SHARE)
    for_time.offer(search.incumbent.placement, search.incumbent.order)
    try:
        if search.budget.remaining() > LEFT_FOR_RULES:
            _plan(for_time, for_loads=True)
        else:
            shorten(for_time)
    except OutOfTime:
        pass  # of its share
    finally:
        search.budget.evaluations += for_time.budget.evaluations
        shortest = for_time.incumbent
        # The order of starts replays a schedule, except that it loses an order of transfers, and
        # with it may lose the fit.
        offered = search.offer(shortest.placement, order_of(search.problem, shortest.schedule))
        if shortest.feasible and not offered.feasible:
            search.offer(shortest.placement, shortest.order, transfers=shortest.transfers)
