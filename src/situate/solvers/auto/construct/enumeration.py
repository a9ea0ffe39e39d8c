"""Enumeration of every decision of a small problem that may beat the incumbent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.bounds.rounding import rounding
from situate.data.arrays import Order, Placement, Placements
from situate.data.problem import Problem
from situate.simulation.decoding import DecoderName
from situate.simulation.transfer_order import TransferOrder
from situate.solvers.auto.construct.optimistic import least_scores
from situate.solvers.search import Search

MOST_OPS, MOST_PLACEMENTS = 8, 10_000
"""Largest numbers of ops and of placements of a small problem."""

ENUMERATION_SHARE = 0.7
"""Largest share of the remaining budget for enumeration."""

Orders = NDArray[np.int32]
"""(k, n) ops, the most urgent first."""


STEPS = 2_000_000
"""Largest number of items to try for one placement."""

ITEMS_SHARE = 0.5
"""Largest share of the remaining budget for this search."""

Goal = Literal["time", "memory", "fit"]
"""The value that an order decides; with `fit` it only decides feasibility."""


def look_at_all(search: Search) -> bool:
    """Offer the best order of every placement that may beat the incumbent, the most promising
    first; True if the enumeration is complete.

    It tries all permutations of the ops with every decoder. In some an op precedes its inputs,
    which then run only when needed. With a limit of evaluations, it starts only if the limit
    suffices for all. If transfers block, orders are of ops and transfers.
    """
    problem = search.problem
    if problem.n > MOST_OPS or math.prod(problem.allowed.sum(axis=1).tolist()) > MOST_PLACEMENTS:
        return False
    placements, orders = _placements(problem), _orders(problem)
    least = least_scores(search, placements)
    promising = [i for i, score in enumerate(least) if _promises(search, score)]
    promising.sort(key=least.__getitem__)
    if _transfers_are_ordered(problem):
        return _order_items(search, [(placements[i], least[i][1]) for i in promising])
    if not _affordable(search, len(promising) * len(orders) * len(search.decoders)):
        return False
    end = search.budget.remaining() * (1 - ENUMERATION_SHARE)
    for i in promising:
        if not _promises(search, least[i]) or search.proved():
            break
        if search.budget.remaining() <= end:
            return False
        for decoder in search.decoders:
            _offer_best_order(search, placements[i], least[i][1], orders, decoder)
    return True


def _promises(search: Search, least: tuple[int, float]) -> bool:
    """True if a score beats the incumbent by more than rounding."""
    excess, value = search.incumbent.score
    # Twice, because bound and incumbent may both be rounded.
    return least < (excess, value * (1 - 2 * rounding(search.problem)))


def _transfers_are_ordered(problem: Problem) -> bool:
    """True if transfers block and their order may change the score."""
    by_order = problem.rules.memory != "persistent" or problem.objective == "time"
    return problem.transfers == "blocking" and by_order


def _affordable(search: Search, evaluations: int) -> bool:
    limit = search.budget.evaluation_limit
    return limit is None or evaluations <= ENUMERATION_SHARE * (limit - search.budget.evaluations)


def _placements(problem: Problem) -> Placements:
    """(k, n) all placements that respect pins and groups."""
    # (k, units) -> (k, n): all combinations of one device per unit.
    choices = [np.flatnonzero(may) for may in problem.allowed]
    return np.array(list(product(*choices)), np.int32)[:, problem.unit]


def _orders(problem: Problem) -> Orders:
    """All orders of the ops; a single one if the order does not change the score."""
    if problem.transfers == "atomic" and problem.objective == "time":
        return np.array([problem.graph.order], np.int32)
    if problem.rules.memory == "persistent" and problem.objective != "time":
        return np.array([problem.graph.order], np.int32)
    return np.array(list(permutations(range(problem.n))), np.int32)


def _offer_best_order(
    search: Search, placement: Placement, period: float, orders: Orders, decoder: DecoderName
) -> None:
    """Offer a placement in its best order by this decoder if that beats the incumbent.

    Args:
        period: of the placement; only used for throughput.
    """
    if decoder == "calls":
        search.offer(placement, orders[0])
        return
    problem = search.problem
    # (orders, n) the placement, and priorities in every order: the first op's is n.
    everywhere = np.tile(placement, (len(orders), 1))
    # `argsort` inverts a permutation: it turns the op at each place into the place of each op.
    priority = (problem.n - orders.argsort(axis=1)).astype(np.float32)
    makespan, peak = search.simulator.evaluate(
        everywhere, priority, decoder=decoder, threads=search.threads
    )
    search.budget.evaluations += len(orders)
    # In floating point, because a sum of bytes may exceed 64 bits.
    excess = np.maximum(0, peak - problem.capacity).astype(np.float64).sum(axis=1)
    values = {"time": makespan, "memory": peak.max(axis=1).astype(np.float64)}
    value = values.get(problem.objective, np.full(len(orders), period))
    # The last key counts first: excess bytes, then the value.
    first = int(np.lexsort((value, excess))[0])
    if (excess[first], value[first]) < search.incumbent.score:
        search.offer(placement, orders[first], [decoder])


def _order_items(search: Search, placements: Sequence[tuple[Placement, float]]) -> bool:
    """Offer the best order of ops and transfers of every placement; True if the search was
    exhaustive.

    Args:
        placements: (n,) each, with a lower bound on the value of its plans; the most promising
            first.
    """
    end = search.budget.remaining() * (1 - ITEMS_SHARE)
    for placement, least in placements:
        if search.proved() or not _may_improve(search, least):
            continue
        steps = _steps_left(search, end)
        if (
            search.budget.remaining() <= end
            or not steps
            or not _offer_best(search, placement, least, steps)
        ):
            return False
    return True


def _may_improve(search: Search, least: float) -> bool:
    return search.incumbent.excess > 0 or least < _to_beat(search)


def _to_beat(search: Search) -> float:
    """A value that is better than the incumbent by more than rounding."""
    return search.incumbent.value * (1 - 2 * rounding(search.problem))


def _steps_left(search: Search, end: float) -> int:
    """Remaining number of items to try; an evaluation counts as n items, like a decoding."""
    if search.budget.evaluation_limit is None:
        return STEPS
    budget = (
        (search.budget.remaining() - end)
        * search.budget.evaluation_limit
        * (1 - search.budget.reserve)
    )
    return min(STEPS, max(0, int(budget)) * search.problem.n)


def _offer_best(search: Search, placement: Placement, least: float, steps: int) -> bool:
    """Offer the best order of a placement if it beats the incumbent; False if there was no time for
    all orders."""
    objective = search.problem.objective
    goal: Goal = "fit" if objective == "throughput" else objective
    exhausted, steps_taken, order, sent = _core.search.best_item_order(
        search.simulator.core,
        placement,
        goal,
        excess=search.incumbent.excess,
        value=_to_beat(search),
        constant=least,
        steps=steps,
        seconds=_seconds_left(search),
    )
    search.budget.evaluations += math.ceil(steps_taken / search.problem.n)
    if len(order):
        _offer(search, placement, order, TransferOrder(*sent))
    return exhausted


def _seconds_left(search: Search) -> float:
    if search.budget.time_limit is None:
        return math.inf
    return max(0.0, search.budget.time_limit * (1 - search.budget.reserve) - search.budget.seconds)


def _offer(search: Search, placement: Placement, order: Order, sent: TransferOrder) -> None:
    """Offer an order with transfers as urgent as their readers, and with their own urgency."""
    search.offer(placement, order)
    search.offer(placement, order, ["serial"], transfers=sent)
