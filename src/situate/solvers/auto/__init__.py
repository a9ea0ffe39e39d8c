"""`auto`: the best of the list rules, improved by climbing and annealing until the budget ends."""

from __future__ import annotations

import math

from situate import _core
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.simulation.decoding import order_of
from situate.solvers.auto.balance import balance
from situate.solvers.auto.blocks import blocks
from situate.solvers.auto.climb import climb
from situate.solvers.auto.critical import move_critical, phase_lines
from situate.solvers.auto.exchange import exchange
from situate.solvers.auto.fitted import offer_fitted
from situate.solvers.auto.live import orders_count
from situate.solvers.auto.one_device import candidates, keep_to_one_device
from situate.solvers.auto.pipeline import offer_pipelines
from situate.solvers.auto.rank import by_rank
from situate.solvers.auto.shares import offer_shares
from situate.solvers.auto.slices import (
    SLICE,
    best,
    chains_of,
    evaluations_of,
    slice_seconds,
    slices,
)
from situate.solvers.auto.small import look_at_all
from situate.solvers.auto.stretches import offer_stretches, outgrown
from situate.solvers.auto.tidy import tidy
from situate.solvers.heuristics import etf, expert, heft, single, topological
from situate.solvers.heuristics.random_search import SAMPLES, draw
from situate.solvers.search import Search

DRAWING = 0.05
"""Part of the budget after which no more random plans are drawn: on small problems they pay."""

TIDYING = 0.05
"""Part of the budget that is kept for tidying."""

FOR_TIME = 0.4
"""Part of what is left of the budget that a search for throughput gives to a search for time, where
the order of ops decides what fits."""

HEARING = 0.5
"""Part of the budget that must be left for that search to hear the rules too, which took the
rest."""

EVALUATIONS_TO_RECOVER = 100
"""Evaluations an op from which on annealing begins hot."""

SETTING_OUT, LINING_UP = 15, 10
"""What annealing does before its first slice takes no longer than so many offers, and the lines of
critical moves."""

BLOCKS_AT_LEAST, BLOCKS_AT_MOST = 20, 2
"""One move in so many concerns a whole block: seldom in a long search, often in a short one."""


def run(search: Search) -> None:
    """Offer every rule's plan, anneal the best one, and tidy what comes out."""
    search.reserve = TIDYING
    _improve(search)
    search.reserve, search.second_order = 0.0, None
    tidy(search, candidates(search))
    keep_to_one_device(search)


def _improve(search: Search, for_loads: bool = False) -> None:
    """However short the time, all rules are heard: so this is never worse than one of them.

    Args:
        for_loads: the step is not wanted for itself, and critical moves, which share no load, would
            take time from what does.
    """
    if _ordered(search.problem):
        search.second_order = by_rank(search)
    for rule in (single, expert, topological, heft, etf):
        try:
            rule.run(search)
        except SituateError:
            if rule is not expert:  # not every network has an expert placement
                raise
        if search.proved() or search.evaluated():
            return
    if search.finished():
        return
    by_load = search.problem.objective == "throughput"
    if by_load and search.problem.d == 1 and best(search).feasible:
        return
    if look_at_all(search):
        return
    offer_shares(search)
    if search.finished():
        return
    offer_fitted(search)
    if full := outgrown(search):
        offer_stretches(search)
    if search.finished():
        return
    for _ in draw(search, SAMPLES):
        if search.left() < 1 - DRAWING:
            break
    if search.finished():
        return
    offer_pipelines(search)
    exchange(search)
    if search.finished():
        return
    if not by_load:
        _shorten(search, full and not for_loads)
        return
    if orders_count(search.problem) and not search.finished():
        _offer_shortest_step(search)
    _make_fit(search)
    balance(search)


def _offer_shortest_step(search: Search) -> None:
    """Offer what a search for time finds: in its order may fit what does not in the graph's."""
    for_time = search.for_time(FOR_TIME)
    for_time.offer(best(search).placement, best(search).order)
    try:
        if search.left() > HEARING:
            _improve(for_time, for_loads=True)
        else:
            _shorten(for_time)
    finally:
        search.evaluations += for_time.evaluations
        found = best(for_time)
        offered = search.offer(found.placement, order_of(search.problem, found.schedule))
        if found.feasible and not offered.feasible:
            search.offer(found.placement, found.order)


def _ordered(problem: Problem) -> bool:
    """Whether it is time that is sought, and the order of ops that decides it."""
    return problem.objective == "time" and problem.transfers != "atomic"


def _shorten(search: Search, full: bool = False) -> None:
    """For time climb, then in any case anneal; where the fastest accelerator is full, with critical
    moves."""
    search.second_order = None
    if _ordered(search.problem):
        climb(search)
    _anneal(search, full)


def _make_fit(search: Search) -> None:
    """Where nothing fits yet, up to half of the budget goes to orders too: they decide how many
    tensors are live at once."""
    if best(search).feasible or search.problem.rules.memory == "persistent":
        return
    kept, search.reserve = search.reserve, 0.5
    if not search.finished():
        _anneal(search)
    search.reserve = kept


def _anneal(search: Search, full: bool = False) -> None:
    """Simulated annealing over placement and order (Kirkpatrick et al., Science 220, 1983), where
    there is time for what comes before its first slice."""
    if not search.affords(SETTING_OUT + LINING_UP * full):
        return
    found = best(search)
    lines = phase_lines(search.problem) if full else []
    core = search.simulator.core
    order = order_of(search.problem, found.schedule)
    goal = "time" if search.problem.objective == "time" else "memory"
    chains = chains_of(search)
    annealers = _core.make_annealers(core, goal, search.seed, chains, found.placement, order)
    together = blocks(search.problem)
    annealers.move_blocks(*together, BLOCKS_AT_LEAST)
    scale = annealers.typical_change(_samples(search))
    heat = _heat(search, annealers)
    scale *= heat
    annealers.move_blocks(*together, max(BLOCKS_AT_MOST, round(BLOCKS_AT_LEAST * heat)))
    search.evaluations += annealers.evaluations
    known = [(True, math.inf)] * chains
    for temperature, evaluations, new_round in slices(search, chains):
        if new_round:
            exchange(search)
            if full:
                move_critical(search, lines)
            found = best(search)
            order = order_of(search.problem, found.schedule)
            for chain in range(chains):
                annealers.restart(chain, found.placement, order)
        before = annealers.evaluations
        try:
            annealers.run(temperature * scale, evaluations, slice_seconds(search), search.threads)
        finally:
            search.evaluations += annealers.evaluations - before
            _offer_best(search, annealers, known)
        search.report()
        if search.problem.objective == "throughput" and best(search).feasible:
            return


def _offer_best(
    search: Search, annealers: _core.Annealers, known: list[tuple[bool, float]]
) -> None:
    """What each chain has found that is better than what is `known` of it."""
    for chain, before in enumerate(known):
        feasible, cost, placement, order = annealers.best(chain)
        if (not feasible, cost) < before:
            known[chain] = not feasible, cost
            search.offer(placement, order)


def _samples(search: Search) -> int:
    """Moves to try for what they typically change."""
    samples = min(200, max(20, 2_000_000 // search.problem.n))
    if search.evaluation_limit is None:
        return samples
    return min(samples, 1 + (search.evaluation_limit - search.evaluations) // 10)


def _heat(search: Search, annealers: _core.Annealers) -> float:
    """Colder, the fewer evaluations an op the budget allows: then there is no time to recover."""
    if search.time_limit is None:
        expected = float(search.evaluation_limit or 0)
    else:
        begin, before = search.seconds, annealers.evaluations
        evaluations = max(1, evaluations_of(search, search.threads) // 10)
        annealers.run(0.0, evaluations, SLICE, search.threads)
        rate = (annealers.evaluations - before) / max(search.seconds - begin, 1e-6)
        expected = rate * (search.time_limit - search.seconds)
    return min(1.0, max(0.0, expected) / (EVALUATIONS_TO_RECOVER * search.problem.n))
