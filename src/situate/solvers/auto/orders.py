"""Orders of ops for a placement: by rank, frugal, regrouped around the peak, or listed anew."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from situate import _core
from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.data.topology import edge_tensors, places, topological_by
from situate.data.tree_order import SECONDS_AN_OP, tree_order
from situate.simulation.decoding import order_of, priority_of, rising
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

TREE_SHARE = 0.1
"""Largest share of the remaining time for the order of a tree."""

REGROUP_SHARE = 0.1
"""Largest share of the remaining time for regrouping one order."""

SETS, SETS_IN_TIME = 50_000, 2**40
"""Largest number of sets of ops per order, without and with a time limit. A time limit ends the
search long before its number is reached."""

OFFERS_TO_REGROUP = 5
"""Setup takes less time than so many offers."""

URGENCIES = ((1.0, 2.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0))
"""Weights of an op's place in depth-first order and of its longest path to the end. The first two
suit pipelines, the third keeps few slices in flight, and the last is upward rank."""

TRIES = 4
"""Largest number of schedules per urgency, each with less room by the excess of the one before."""

ORDERS_SHARE = 0.05
"""Share of the remaining budget after which no further urgency starts."""

OFFERS_TO_LIST = 5
"""One list schedule takes less time than so many offers."""

MOST_EVALUATIONS = 40
"""Largest number of evaluations for all urgencies."""

MOST_PLACEMENTS = 6
"""Largest number of placements to schedule again."""


def second_order(search: Search) -> Order | None:
    """The second order for every plan: by rank for time; for memory, one that reads tensors soon
    after their production."""
    if search.problem.objective == "memory":
        return frugal_order(search)
    return by_rank(search) if order_decides_time(search.problem) else None


def order_decides_time(problem: Problem) -> bool:
    """True if the objective is time and the order of ops decides it."""
    return problem.objective == "time" and problem.transfers != "atomic"


def by_rank(search: Search) -> Order:
    """Ops by upward rank, the highest first (Topcuoglu et al., HEFT, IEEE TPDS 13(3), 2002, Eq. 8).

    It is a topological order because durations are not negative. The graph's order of an unrolled
    network runs all steps of a layer before the next layer. A device with parts of both layers then
    delays the readers of the next layer's first steps.
    """
    return rising(search.problem, -_core.search.upward_rank(search.simulator.core))


def frugal_order(search: Search) -> Order:
    """(n,) the order with the least peak memory on one device, of several.

    They are depth-first, along the heaviest paths from either end and, if there is time, optimal
    for the tree in which each op has one reader.
    """
    problem, limit, core = search.problem, search.budget.time_limit, search.simulator.core
    orders = [problem.depth_first]
    orders += [_core.search.heavy_path_order(core, backwards) for backwards in (False, True)]
    if limit is None or SECONDS_AN_OP * problem.n <= TREE_SHARE * (limit - search.budget.seconds):
        # An op with several readers may follow one of them in the tree, so the order is repaired.
        orders.append(topological_by(problem, places(tree_order(problem).order)))
    return min(orders, key=lambda order: bytes_in_use(problem, order))


def bytes_in_use(problem: Problem, order: Order) -> int:
    """Peak bytes of tensors and workspaces if all ops run on one device."""
    place = places(order)
    begin = place[problem.producer]
    end = begin.copy()
    np.maximum.at(end, edge_tensors(problem), place[problem.consumers])
    end[problem.output == 1] = problem.n - 1
    # (n + 1,) change of live bytes at each place: allocated less freed bytes.
    size, change = np.where(problem.resident == 1, 0, problem.size), np.zeros(problem.n + 1, int)
    # Unlike `change[begin] += size`, `add.at` counts every tensor that begins at the same place.
    np.add.at(change, begin, size)
    np.subtract.at(change, end + 1, size)
    return int((np.cumsum(change)[:-1] + problem.workspace[order]).max())


def offer_regrouped(search: Search) -> None:
    """Offer the incumbent's placement in its own order, regrouped, if it is on one device; then in
    the frugal order, regrouped.

    If the frugal order is the search's second order, the regrouped one replaces it.
    """
    offer_own_regrouped(search)
    if _worthwhile(search):
        frugal = frugal_order(search) if search.second_order is None else search.second_order
        regrouped = _offer(search, frugal)
        if frugal is search.second_order:
            search.second_order = regrouped


def offer_own_regrouped(search: Search) -> None:
    """Offer the incumbent in its own order, regrouped, if it is on one device."""
    best = search.incumbent
    if _worthwhile(search) and _on_one_device(best):
        _offer(search, order_of(search.problem, best.schedule))


def _worthwhile(search: Search) -> bool:
    """True if fewer live bytes would help and there is time to find them."""
    problem = search.problem
    saves_bytes = problem.objective == "memory" or not search.incumbent.feasible
    live = problem.rules.memory != "persistent"
    return (
        saves_bytes and live and not search.finished() and search.budget.affords(OFFERS_TO_REGROUP)
    )


def _on_one_device(candidate: Candidate) -> bool:
    return bool((candidate.placement == candidate.placement[0]).all())


def _offer(search: Search, order: Order) -> Order:
    """Regroup an order and offer the incumbent's placement in it if it is better; the new order."""
    best, limit = search.incumbent, search.budget.time_limit
    seconds_left = (
        math.inf if limit is None else limit * (1 - search.budget.reserve) - search.budget.seconds
    )
    regrouped = _core.search.regrouped_order(
        search.simulator.core,
        order,
        target=_few_enough(search, best),
        sets=SETS if limit is None else SETS_IN_TIME,
        seconds=REGROUP_SHARE * seconds_left,
    )
    search.consider(best.placement, regrouped, "serial")
    return regrouped


def _few_enough(search: Search, candidate: Candidate) -> int:
    """Target bytes of tensors and workspaces for a plan on one device; 0 for other plans.

    The target is the lower bound for memory, else the device's capacity, less persistent bytes.
    """
    problem = search.problem
    if not _on_one_device(candidate):
        return 0
    by_memory = problem.objective == "memory"
    room = int(search.lower_bound if by_memory else problem.capacity[candidate.placement[0]])
    return room - int(problem.persistent.sum())


def offer_placed_orders(search: Search) -> None:
    """Offer the incumbent's placement in other orders if they are better and transfers overlap.

    Each device runs the most urgent op after which all others can still run in turn. Without this
    foresight, a list scheduler starts slices that it cannot finish once activations fill memory,
    and local search does not repair that.
    """
    if _affordable(search):
        _list_anew(search, search.incumbent.placement, URGENCIES)


def list_pipelines(search: Search, placements: Sequence[Placement]) -> None:
    """Offer placements of slices by the first urgency if they are better, then the incumbent's by
    all urgencies.

    Placements with the least busiest device come first. A pipeline that waits long in its published
    order may be the shortest in another one.
    """
    problem = search.problem
    if problem.objective != "time" or problem.transfers != "overlapped":
        return
    busiest = [_busiest(problem, placement) for placement in placements]
    for number in np.argsort(busiest, kind="stable")[:MOST_PLACEMENTS].tolist():
        best = search.incumbent
        # No order makes the step shorter than the work of the busiest device.
        if not _affordable(search) or (best.feasible and busiest[number] >= best.value):
            break
        _list_anew(search, placements[number], URGENCIES[:1])
    offer_placed_orders(search)


def _busiest(problem: Problem, placement: Placement) -> float:
    """Seconds of work of a placement's busiest device."""
    seconds = problem.seconds[np.arange(problem.n), placement]
    return float(np.bincount(placement, seconds).max())


def _affordable(search: Search) -> bool:
    limit = search.budget.evaluation_limit
    if limit is not None and limit - search.budget.evaluations < MOST_EVALUATIONS:
        return False
    return search.problem.transfers == "overlapped" and search.budget.affords(OFFERS_TO_LIST)


def _list_anew(
    search: Search, placement: Placement, urgencies: Sequence[tuple[float, float]]
) -> None:
    """Offer a placement in the order of each urgency, within a share of the remaining budget."""
    line = np.array(search.problem.depth_first, np.int32)
    orders = _core.search.make_placed_orders(search.simulator.core, placement, line)
    end = search.budget.remaining() * (1 - ORDERS_SHARE)
    for urgency in urgencies:
        _offer_listed(search, orders, placement, urgency)
        if (
            search.finished()
            or search.budget.remaining() < end
            or not search.budget.affords(OFFERS_TO_LIST)
        ):
            return


def _offer_listed(
    search: Search,
    orders: _core.search.PlacedOrders,
    placement: Placement,
    urgency: tuple[float, float],
) -> None:
    """Offer a placement in the order of an urgency.

    The list schedule may wait for room on another device, but decoders do not wait. So the first
    order may not fit, and later ones reserve room.
    """
    problem, reserved = search.problem, np.zeros(search.problem.d, np.int64)
    for _ in range(TRIES):
        order = orders.order(*urgency, reserved)
        excess = search.consider(placement, order, "serial")
        if not excess or not search.budget.affords(OFFERS_TO_LIST):
            return
        # The excess is a sum over devices; the peaks tell which of them lacks room.
        search.budget.evaluations += 1
        _, [peak] = search.simulator.evaluate(
            placement[None], priority_of(order)[None], decoder="serial", threads=1
        )
        over = np.maximum(0, peak - problem.capacity)
        # Saturates, because a sum of bytes may overflow beside unlimited capacities.
        reserved = np.minimum(reserved, UNLIMITED - over) + over
