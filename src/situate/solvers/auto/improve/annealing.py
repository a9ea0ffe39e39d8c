"""Simulated annealing over placement and order (Kirkpatrick et al., Science 220, 1983).

The core runs the chains of moves. This module sets them up, cools them round by round, and offers
their best plans.
"""

from __future__ import annotations

import math
from typing import Literal

from situate import _core
from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.simulation.decoding import order_of
from situate.simulation.transfer_order import TransferOrder
from situate.solvers.auto.improve.blocks import blocks
from situate.solvers.auto.improve.cooling import (
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
from situate.solvers.auto.improve.moves import move_critical, phase_lines, swap_devices
from situate.solvers.auto.orders import offer_own_regrouped, offer_placed_orders
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

Goal = Literal["time", "memory", "shortfall"]
"""Quantities that annealing minimises."""

OFFERS_TO_SET_UP, OFFERS_FOR_LINES = 15, 10
"""Annealing's setup, and the lines of critical moves, take less time than so many offers."""

FEW_SAMPLES, SAMPLES_AT_MOST = 10, 200
"""Range of the number of random moves that annealing tries before its first interval."""

TRIAL_SHARE = 0.05
"""Largest share of the remaining time for measuring the speed of annealing."""

BLOCKS_AT_LEAST, BLOCKS_AT_MOST = 20, 2
"""One move in so many moves a whole block: rarely in a long search, often in a short one."""


def anneal(search: Search, full: bool = False) -> None:
    """Anneal for the objective, with critical moves if `full`; while nothing fits, for the smallest
    shortfall of memory."""
    if search.incumbent.excess:
        anneal_for(search, "shortfall", full, to_fit=True)
    # Calls that wait for one another make a plan infeasible even without excess bytes.
    if not search.incumbent.excess and not search.finished():
        anneal_for(search, "time" if search.problem.objective == "time" else "memory", full)


def anneal_for(search: Search, goal: Goal, full: bool = False, to_fit: bool = False) -> None:
    """Anneal for one goal, if there is time for the setup.

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
    # A short search has no time to move the units of a block one by one.
    annealers.move_blocks(*together, max(BLOCKS_AT_MOST, round(BLOCKS_AT_LEAST * heat)))
    search.budget.evaluations += annealers.evaluations
    best_costs, rounds = [(True, math.inf)] * chains, 0
    varies = goal == "memory" and search.problem.rules.memory != "persistent"
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
            rounds += 1
            levels = varies and rounds < len(schedule.round_ends)
            _restart(annealers, chains, incumbent, order, levels)
            evaluations = evaluations_of(search, chains)  # without those just spent
        before = annealers.evaluations
        # Ctrl-C may end an interval; its evaluations and its best plan count nevertheless.
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


def _restart(
    annealers: _core.search.Annealers,
    chains: int,
    incumbent: Candidate,
    order: Order,
    levels: bool,
) -> None:
    """Let every chain go on from the best plan of all.

    Args:
        levels: True if every second chain prefers level peaks to few bytes in sum. Either leads to
            plans that the other misses.
    """
    sent = incumbent.transfers.arrays if incumbent.transfers else None
    for chain in range(chains):
        annealers.use_power_mean(chain, levels and chain % 2 == 1)
        annealers.restart(chain, incumbent.placement, order, sent)


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
        # At temperature zero no move makes a plan worse, so the trial is not lost.
        annealers.run(0.0, evaluations, seconds, search.threads)
        rate = (annealers.evaluations - before) / max(search.budget.seconds - begin, 1e-6)
        # Evaluations that the rest of the time allows at the rate of the trial.
        expected = rate * (search.budget.time_limit - search.budget.seconds)
    return min(1.0, max(0.0, expected) / (schedule.to_recover * search.problem.n))
