"""The phase that constructs plans: list rules, cuts of a line of units, random plans, pipelines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from situate import _core
from situate.data.arrays import Placement
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.solvers.auto.construct.cuts import offer_level_cuts, offer_proportional_cuts
from situate.solvers.auto.construct.enumeration import look_at_all
from situate.solvers.auto.construct.partition import offer_partition
from situate.solvers.auto.construct.pipelines import offer_pipelines
from situate.solvers.auto.construct.segments import offer_memory_fits, offer_segments, outgrown
from situate.solvers.auto.improve.moves import swap_devices
from situate.solvers.auto.improve.windows import is_short, sweep_at_once, sweep_windows
from situate.solvers.auto.orders import list_pipelines, offer_placed_orders, offer_regrouped
from situate.solvers.heuristics.baselines import SAMPLES, draw, expert, single
from situate.solvers.heuristics.data_parallel import data_parallel, fsdp, offer_on
from situate.solvers.heuristics.favourite_children import critical_children
from situate.solvers.heuristics.fills import topological
from situate.solvers.heuristics.list_rules import etf, heft, offer_earliest
from situate.solvers.heuristics.pass_schedules import ALL_ORDERS
from situate.solvers.heuristics.tensor_parallel import run as tensor_parallel
from situate.solvers.local_search import justification
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines

RANDOM_SHARE = 0.05
"""Share of the budget after which random plans end."""

OFFERS_FOR_EARLIEST = 60
"""Time needed for both rules of earliest starts, in offers: three times their duration. Shorter
searches need the time for other parts."""

OPS_OF_A_LARGE_STEP, OFFERS_WITHOUT_HURRY = 20_000, 200
"""With time for fewer offers, a search on so many ops or more sweeps before it tries all rules.
Such steps have a plan before the rules begin."""

Rule = Callable[[Search], None]


def construct(
    search: Search,
    plan_coarse: Callable[[Search], None],
    on_start: Callable[[], None] | None = None,
) -> bool | None:
    """Offer constructed plans, simple ones first.

    Args:
        plan_coarse: offers the plan of a coarse problem.
        on_start: runs before the plans that take long, such as the start of workers.

    Returns:
        True if the network has outgrown the fastest accelerator, so that improvement needs critical
        moves; None if the search is over, because the plan is optimal or the budget is spent.
    """
    if _offer_rules(search, plan_coarse) or look_at_all(search):
        return None
    if on_start is not None:
        on_start()
    return _offer_constructed(search)


def _offer_rules(search: Search, plan_coarse: Callable[[Search], None]) -> bool:
    """Offer the plans of the list rules; True if the plan is optimal or the budget is spent.

    Rules run while there is time, and also afterwards while nothing fits. Other orders for the
    placements of pipelines come last.
    """
    pipelines: list[Placement] = []
    done = _offer_in_a_hurry(search, plan_coarse)
    # `single` comes first, so that even a large network has a plan at once. A step in parts has one
    # at once by `tensor_parallel`, which is far ahead of it.
    rules: tuple[Rule, ...] = (
        tensor_parallel,
        single,
        expert,
        # Large graphs have few of the plans below within a second, and none is as good.
        plan_coarse,
        data_parallel,
        _offer_slices_everywhere,
        fsdp,
        lambda search: pipelines.extend(offer_slice_pipelines(search, ALL_ORDERS)),
        topological,
        heft,
        etf,
    )
    for rule in rules:
        if rule in done:
            continue
        try:
            search.keep_to_limit()
            rule(search)
        except SituateError:
            # Not every network has an expert placement, and few steps have slices or parts.
            if rule in (single, topological, heft, etf):
                raise
        if search.proved() or search.budget.out_of_evaluations():
            return True
    if pipelines:
        list_pipelines(search, pipelines)
    by_load = search.problem.objective == "throughput"
    return search.finished() or (by_load and search.problem.d == 1 and search.incumbent.feasible)


def _offer_in_a_hurry(search: Search, plan_coarse: Callable[[Search], None]) -> tuple[Rule, ...]:
    """In a large step with time for few plans, sweep over a coarse plan, or else over a list
    schedule, before the other rules.

    Returns the rules that ran.
    """
    problem = search.problem
    by_hand = problem.graph.slices is not None or problem.graph.cuts is not None
    if problem.n < OPS_OF_A_LARGE_STEP or by_hand or not is_short(search, OFFERS_WITHOUT_HURRY):
        return ()
    with suppress(SituateError):
        # Not every network has an expert placement.
        expert(search)
    before = search.incumbent
    plan_coarse(search)
    if search.incumbent is not before:
        sweep_at_once(search, OFFERS_WITHOUT_HURRY)
        return single, expert, plan_coarse
    heft(search)
    if search.budget.affords(OFFERS_FOR_EARLIEST / 2):
        _offer_critical(search)
    sweep_at_once(search, OFFERS_WITHOUT_HURRY)
    return single, expert, plan_coarse, heft


def _offer_constructed(search: Search) -> bool:
    """Offer cuts of a line of units, random plans, pipelines and new list schedules.

    Returns True if the network has outgrown the fastest accelerator.
    """
    if search.problem.objective == "memory":
        offer_regrouped(search)
    _list_to_fit(search)
    _offer_earliest(search)
    sweep_at_once(search)
    if not search.finished():
        offer_partition(search)
    if not search.finished():
        offer_proportional_cuts(search)
    if search.finished():
        return False
    offer_memory_fits(search)
    offer_level_cuts(search)
    if full := outgrown(search):
        offer_segments(search)
        # The best placement by rank seldom fits; in a lookahead order it often does.
        offer_placed_orders(search)
    for offer in (_offer_random, offer_pipelines, swap_devices, _list_to_fit):
        if not search.finished():
            offer(search)
    if not search.finished():
        justification.offer_start(search, full)
        if full:
            # Hill climbing gains little where devices are full.
            sweep_windows(search)
    return full


def _list_to_fit(search: Search) -> None:
    """While nothing fits, look for an order in which the best placement fits."""
    if not search.incumbent.feasible:
        offer_placed_orders(search)


def _offer_slices_everywhere(search: Search) -> None:
    """Offer data parallelism on all devices if there are CPUs beside the accelerators."""
    if len(accelerators(search.problem)) < search.problem.d:
        offer_on(search, range(search.problem.d))


def _offer_earliest(search: Search) -> None:
    """Offer the plan of `m_etf`, and that of `m_sct` with critical children as favourites, which
    need no linear program.

    If nothing fits, these plans are dropped. A device that fills up in the order of the step lacks
    few bytes but may be far from a feasible plan.
    """
    problem, before = search.problem, search.best
    if problem.objective != "time" or problem.transfers == "atomic":
        return
    if not search.budget.affords(OFFERS_FOR_EARLIEST):
        return
    offer_earliest(search, np.full(problem.n, -1, np.int32))
    if not search.finished():
        _offer_critical(search)
    if before is not None and not search.incumbent.feasible:
        search.best = before


def _offer_critical(search: Search) -> None:
    """Offer the plan of `m_sct` with critical children as favourites."""
    rank = _core.search.upward_rank(search.simulator.core)
    offer_earliest(search, critical_children(search.problem, rank))


def _offer_random(search: Search) -> None:
    """Offer random plans, which help on small problems, for a small share of the budget."""
    for _ in draw(search, SAMPLES):
        if search.budget.remaining() < 1 - RANDOM_SHARE:
            return
