"""`auto`: the best of the list rules, improved by climbing and annealing until the budget ends.

Constructed plans come first: list rules, cuts of a line of units, pipelines. Hill climbing over
blocks and simulated annealing over single units follow, or annealing over loads for throughput. A
cleanup ends the search. `docs/methods/auto.md` gives the purpose of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from situate import _core
from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.simulation.decoding import order_of
from situate.simulation.transfer_order import TransferOrder
from situate.solvers.auto.balance import balance
from situate.solvers.auto.blocks import blocks
from situate.solvers.auto.cleanup import clean_up
from situate.solvers.auto.climb import climb
from situate.solvers.auto.cooling import (
    BLOCKING,
    INTERVAL,
    OVERLAPPED,
    Cooling,
    blocking_scale,
    chains_of,
    cooling,
    evaluations_of,
    interval_seconds,
)
from situate.solvers.auto.critical import move_critical, phase_lines
from situate.solvers.auto.device_swap import swap_devices
from situate.solvers.auto.earliest import offer_earliest_rules
from situate.solvers.auto.islands import Islands, islands
from situate.solvers.auto.memory.frugal_order import frugal_order
from situate.solvers.auto.memory.level_cuts import offer_level_cuts
from situate.solvers.auto.memory.liveness import orders_count
from situate.solvers.auto.memory.memory_fit import offer_memory_fits
from situate.solvers.auto.memory.regrouping import offer_own_regrouped, offer_regrouped
from situate.solvers.auto.one_device import candidates, keep_to_one_device
from situate.solvers.auto.pipeline import offer_pipelines
from situate.solvers.auto.placed_orders import list_pipelines, offer_placed_orders
from situate.solvers.auto.proportional_cut import offer_proportional_cuts
from situate.solvers.auto.rank_order import by_rank
from situate.solvers.auto.segments import offer_segments, outgrown
from situate.solvers.auto.slice_moves import move_slices
from situate.solvers.auto.small import look_at_all
from situate.solvers.budget import OutOfTime
from situate.solvers.heuristics.baselines import SAMPLES, draw, expert, single
from situate.solvers.heuristics.data_parallel import data_parallel, fsdp, offer_on
from situate.solvers.heuristics.fills import topological
from situate.solvers.heuristics.list_rules import etf, heft
from situate.solvers.heuristics.pass_schedules import ALL_ORDERS
from situate.solvers.incumbent import Candidate
from situate.solvers.local_search import justification
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines

Goal = Literal["time", "memory", "shortfall"]
"""Quantities that annealing minimises."""

RANDOM_SHARE = 0.05
"""Share of the budget after which random plans end."""

CLEANUP_SHARE = 0.05
"""Share of the budget reserved for the cleanup."""

TIME_SEARCH_SHARE = 0.4
"""Share of the remaining budget that a search for throughput gives to a search for time if the
order of ops decides what fits."""

LEFT_FOR_RULES = 0.5
"""That search also runs the rules if this share of the budget remains after them."""

FIT_SHARE = 0.5
"""Share of the budget reserved while annealing looks for a plan that fits."""

OFFERS_TO_SET_UP, OFFERS_FOR_LINES = 15, 10
"""Annealing's setup, and the lines of critical moves, take less time than so many offers."""

FEW_SAMPLES, SAMPLES_AT_MOST = 10, 200
"""Range of the number of random moves that annealing tries before its first interval."""

TRIAL_SHARE = 0.05
"""Largest share of the remaining time for measuring the speed of annealing."""

BLOCKS_AT_LEAST, BLOCKS_AT_MOST = 20, 2
"""One move in so many moves a whole block: rarely in a long search, often in a short one."""


def run(search: Search) -> None:
    """Offer every rule's plan, improve the best one, and clean up the result."""
    with (
        suppress(OutOfTime),
        search.budget.reserving(CLEANUP_SHARE),
        islands(search, on_island) as others,
    ):
        _improve(search, others=others)
    with suppress(OutOfTime):
        clean_up(search, candidates(search))
        keep_to_one_device(search)


def on_island(search: Search, first: bool, full: bool) -> None:
    """Improve an island's start plan until its budget ends.

    Args:
        first: True in the first round.
        full: see `_shorten`.
    """
    if search.problem.objective == "throughput":
        balance(search)
    elif first:
        _shorten(search, full)
    else:
        _anneal(search, full)


def _improve(search: Search, for_loads: bool = False, others: Islands | None = None) -> None:
    """Offer constructed plans, then improve the best one until the budget ends.

    Args:
        for_loads: True if the plan is a start for throughput. Critical moves, which balance no
            loads, are then left out.
        others: islands that improve the plan instead of this process.
    """
    problem = search.problem
    search.keep_to_limit()
    with search.trying(_second_order(search)):
        if _offer_rules(search) or look_at_all(search):
            return
        if others is not None:
            others.start()
        full = _offer_constructed(search)
    if search.finished():
        return
    if problem.objective == "throughput" and orders_count(problem):
        _offer_shortest_step(search)
    if problem.objective != "memory":
        _make_fit(search)
    full = full and not for_loads
    if others is None or not others.improve(full):
        on_island(search, True, full)


def _offer_constructed(search: Search) -> bool:
    """Offer cuts of a line of units, random plans, pipelines and new list schedules.

    Returns True if the network has outgrown the fastest accelerator.
    """
    if search.problem.objective == "memory":
        offer_regrouped(search)
    _list_to_fit(search)
    offer_earliest_rules(search)
    if not search.finished():
        offer_proportional_cuts(search)
    if search.finished():
        return False
    offer_memory_fits(search)
    offer_level_cuts(search)
    if full := outgrown(search):
        offer_segments(search)
    for offer in (_offer_random, offer_pipelines, swap_devices, _list_to_fit):
        if not search.finished():
            offer(search)
    # If memory is short, lists end in local optima of single moves.
    if not full and not search.finished():
        justification.offer_start(search)
    return full


def _list_to_fit(search: Search) -> None:
    """While nothing fits, look for an order in which the best placement fits."""
    if not search.incumbent.feasible:
        offer_placed_orders(search)


def _offer_rules(search: Search) -> bool:
    """Offer the plans of the list rules; True if the plan is optimal or the budget is spent.

    Rules run while there is time, and also afterwards while nothing fits. Other orders for the
    placements of pipelines come last.
    """
    pipelines: list[Placement] = []
    rules: tuple[Callable[[Search], None], ...] = (
        single,
        expert,
        data_parallel,
        _offer_slices_everywhere,
        fsdp,
        lambda search: pipelines.extend(offer_slice_pipelines(search, ALL_ORDERS)),
        topological,
        heft,
        etf,
    )
    for rule in rules:
        try:
            search.keep_to_limit()
            rule(search)
        except SituateError:
            # Not every network has an expert placement, and few steps slice their batch.
            if rule in (single, topological, heft, etf):
                raise
        if search.proved() or search.budget.out_of_evaluations():
            return True
    if pipelines:
        list_pipelines(search, pipelines)
    by_load = search.problem.objective == "throughput"
    return search.finished() or (by_load and search.problem.d == 1 and search.incumbent.feasible)


def _offer_slices_everywhere(search: Search) -> None:
    """Offer data parallelism on all devices if there are CPUs beside the accelerators."""
    if len(accelerators(search.problem)) < search.problem.d:
        offer_on(search, range(search.problem.d))


def _offer_random(search: Search) -> None:
    """Offer random plans, which help on small problems, for a small share of the budget."""
    for _ in draw(search, SAMPLES):
        if search.budget.remaining() < 1 - RANDOM_SHARE:
            return


def _offer_shortest_step(search: Search) -> None:
    """Offer the result of a search for time, whose order may fit when the graph's does not."""
    for_time = search.for_time(TIME_SEARCH_SHARE)
    for_time.offer(search.incumbent.placement, search.incumbent.order)
    try:
        if search.budget.remaining() > LEFT_FOR_RULES:
            _improve(for_time, for_loads=True)
        else:
            _shorten(for_time)
    except OutOfTime:
        pass  # of its share
    finally:
        search.budget.evaluations += for_time.budget.evaluations
        shortest = for_time.incumbent
        offered = search.offer(shortest.placement, order_of(search.problem, shortest.schedule))
        if shortest.feasible and not offered.feasible:
            search.offer(shortest.placement, shortest.order, transfers=shortest.transfers)


def _second_order(search: Search) -> Order | None:
    """The second order for every plan: by rank for time; for memory, one that reads tensors soon
    after their production."""
    if search.problem.objective == "memory":
        return frugal_order(search)
    return by_rank(search) if _ordered(search.problem) else None


def _ordered(problem: Problem) -> bool:
    """True if the objective is time and the order of ops decides it."""
    return problem.objective == "time" and problem.transfers != "atomic"


def _shorten(search: Search, full: bool = False) -> None:
    """Climb for time, then anneal for any objective.

    Args:
        full: True if the fastest accelerator is full; annealing then includes critical moves.
    """
    if _ordered(search.problem) and search.problem.transfers != "blocking":
        move_slices(search)
        climb(search)
    _anneal(search, full)


def _make_fit(search: Search) -> None:
    """While nothing fits, anneal placements and orders for memory, with up to half of the budget:
    orders decide how many tensors are live at once."""
    if search.incumbent.feasible or search.problem.rules.memory == "persistent":
        return
    with search.budget.reserving(FIT_SHARE):
        offer_regrouped(search)
        if not search.finished() and not search.incumbent.feasible:
            _anneal_for(search, "memory", to_fit=True)


def _anneal(search: Search, full: bool = False) -> None:
    """Anneal for the objective, with critical moves if `full`; while nothing fits, for the smallest
    shortfall of memory."""
    if search.incumbent.excess:
        _anneal_for(search, "shortfall", full, to_fit=True)
    # Calls that wait for one another make a plan infeasible even without excess bytes.
    if not search.incumbent.excess and not search.finished():
        _anneal_for(search, "time" if search.problem.objective == "time" else "memory", full)


def _anneal_for(search: Search, goal: Goal, full: bool = False, to_fit: bool = False) -> None:
    """Simulated annealing over placement and order (Kirkpatrick et al., Science 220, 1983), if
    there is time for its setup.

    Args:
        full: True for critical moves.
        to_fit: True to stop when a plan fits.
    """
    simulated = FEW_SAMPLES if goal != "time" else 0
    if not search.budget.affords(OFFERS_TO_SET_UP + OFFERS_FOR_LINES * full + simulated):
        return
    incumbent = search.incumbent
    lines = phase_lines(search.problem) if full else []
    core = search.simulator.core
    order = _order_of(search.problem, incumbent)
    chains = chains_of(search)
    annealers = _core.search.make_annealers(
        core, goal, search.seed, chains, incumbent.placement, order
    )
    together = blocks(search.problem)
    annealers.move_blocks(*together, BLOCKS_AT_LEAST)
    scale = annealers.typical_change(_samples(search, goal))
    schedule = OVERLAPPED
    if goal == "time" and search.problem.transfers == "blocking":
        schedule, scale = BLOCKING, blocking_scale(search.problem)
    heat = _heat(search, annealers, schedule)
    scale *= heat
    annealers.move_blocks(*together, max(BLOCKS_AT_MOST, round(BLOCKS_AT_LEAST * heat)))
    search.budget.evaluations += annealers.evaluations
    best_costs = [(True, math.inf)] * chains
    for temperature, evaluations, new_round in cooling(search, chains, schedule):
        if new_round:
            swap_devices(search)
            if full:
                move_critical(search, lines)
            offer_placed_orders(search)
            if goal != "time" and search.incumbent is not incumbent:
                offer_own_regrouped(search)
            incumbent = search.incumbent
            order = _order_of(search.problem, incumbent)
            # Every round goes on from the best plan of all chains.
            sent = incumbent.transfers.arrays if incumbent.transfers else None
            for chain in range(chains):
                annealers.restart(chain, incumbent.placement, order, sent)
            evaluations = evaluations_of(search, chains)  # without those just spent
        before = annealers.evaluations
        try:
            annealers.run(
                temperature * scale, evaluations, interval_seconds(search), search.threads
            )
        finally:
            search.budget.evaluations += annealers.evaluations - before
            _offer_best(search, annealers, best_costs)
        search.report()
        if to_fit and not search.incumbent.excess:
            return


def _order_of(problem: Problem, candidate: Candidate) -> Order:
    """The order that annealing begins with: the candidate's own if it orders transfers, else that
    of its schedule."""
    return (
        candidate.order
        if candidate.transfers is not None
        else order_of(problem, candidate.schedule)
    )


def _offer_best(
    search: Search, annealers: _core.search.Annealers, best_costs: list[tuple[bool, float]]
) -> None:
    """Offer the best plan of every chain that improves on its entry in `best_costs`."""
    for chain, before in enumerate(best_costs):
        feasible, cost, placement, order, sent = annealers.best(chain)
        if (not feasible, cost) < before:
            best_costs[chain] = not feasible, cost
            transfers = TransferOrder(*sent)
            search.offer(placement, order, transfers=transfers if len(transfers) else None)


def _samples(search: Search, goal: Goal) -> int:
    """Number of moves for estimating their typical change; few if each costs as much as an offer
    and time is short."""
    samples = min(SAMPLES_AT_MOST, max(FEW_SAMPLES, 2_000_000 // search.problem.n))
    if goal != "time" and not search.budget.affords(OFFERS_TO_SET_UP + samples):
        samples = FEW_SAMPLES
    if search.budget.evaluation_limit is None:
        return samples
    return min(samples, 1 + (search.budget.evaluation_limit - search.budget.evaluations) // 10)


def _heat(search: Search, annealers: _core.search.Annealers, schedule: Cooling) -> float:
    """Factor on the temperature, at most 1: fewer evaluations per op leave less time to recover
    from bad moves."""
    if search.budget.time_limit is None:
        expected = float(search.budget.evaluation_limit or 0)
    else:
        begin, before = search.budget.seconds, annealers.evaluations
        evaluations = max(1, evaluations_of(search, search.threads) // 10)
        seconds = min(INTERVAL, TRIAL_SHARE * (search.budget.time_limit - begin))
        annealers.run(0.0, evaluations, seconds, search.threads)
        rate = (annealers.evaluations - before) / max(search.budget.seconds - begin, 1e-6)
        # Evaluations that the rest of the time allows at the rate of the trial.
        expected = rate * (search.budget.time_limit - search.budget.seconds)
    return min(1.0, max(0.0, expected) / (schedule.to_recover * search.problem.n))
