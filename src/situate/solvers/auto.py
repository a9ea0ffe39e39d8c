"""`auto`: the best of the list rules, improved by climbing and annealing until the budget ends."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from situate import _core
from situate.decoding import order_of
from situate.errors import SituateError
from situate.solvers import etf, expert, heft, single, topological
from situate.solvers.blocks import blocks
from situate.solvers.climb import climb
from situate.solvers.one_device import keep_to_one_device
from situate.solvers.pipeline import offer_pipelines, pipeline_order
from situate.solvers.random_search import SAMPLES, draw
from situate.solvers.search import Found, Search
from situate.solvers.shares import offer_shares
from situate.solvers.tidy import tidy

SLICE = 0.05
"""Wall seconds between two looks at the clock, the best plan and the user's Ctrl-C."""

SLICES = 200
"""Slices of a search that is limited by evaluations alone."""

CHAINS = 2
"""Chains of a search that is limited by evaluations alone: as many at any number of threads."""

DRAWING = 0.05
"""Part of the budget after which no more random plans are drawn: on small problems they pay."""

TIDYING = 0.05
"""Part of the budget that is kept for tidying."""

EVALUATIONS_TO_RECOVER = 100
"""Evaluations an op from which on annealing begins hot."""

BLOCKS_AT_LEAST, BLOCKS_AT_MOST = 20, 2
"""One move in so many concerns a whole block: seldom in a long search, often in a short one."""

ROUNDS = (0.2, 0.5, 1.0)
"""Ends of the cooling rounds, as fractions of the budget; each round starts from the best plan."""

HOTTEST, COLDEST = 0.1, 0.0003
"""Temperatures at the two ends of a round, as fractions of the typical change of a move."""


def run(search: Search) -> None:
    """Offer every rule's plan, anneal the best one, and tidy what comes out."""
    search.reserve = TIDYING
    _improve(search)
    search.reserve = 0.0
    tidy(search)
    keep_to_one_device(search)


def _improve(search: Search) -> None:
    """However short the time, all rules are heard: so this is never worse than one of them."""
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
    if by_load and search.problem.d == 1 and _best(search).feasible:
        return
    offer_shares(search)
    for _ in draw(search, SAMPLES):
        if search.left() < 1 - DRAWING:
            break
    if search.finished():
        return
    offer_pipelines(search)
    if not by_load:
        if search.problem.objective == "time" and search.problem.transfers != "atomic":
            climb(search)
        _anneal(search)
        return
    _make_fit(search)
    _balance(search)


def _make_fit(search: Search) -> None:
    """Where nothing fits yet, up to half of the budget goes to orders too: they decide how many
    tensors are live at once."""
    if _best(search).feasible or search.problem.rules.memory == "persistent":
        return
    kept, search.reserve = search.reserve, 0.5
    if not search.finished():
        _anneal(search)
    search.reserve = kept


def _anneal(search: Search) -> None:
    """Simulated annealing over placement and order (Kirkpatrick et al., Science 220, 1983)."""
    found = _best(search)
    core = search.simulator.core
    order = order_of(search.problem, found.schedule)
    goal = "time" if search.problem.objective == "time" else "memory"
    chains = _chains(search)
    annealers = _core.make_annealers(core, goal, search.seed, chains, found.placement, order)
    together = blocks(search.problem)
    annealers.move_blocks(*together, BLOCKS_AT_LEAST)
    scale = annealers.typical_change(_samples(search))
    heat = _heat(search, annealers)
    scale *= heat
    annealers.move_blocks(*together, max(BLOCKS_AT_MOST, round(BLOCKS_AT_LEAST * heat)))
    search.evaluations += annealers.evaluations
    known = [(True, math.inf)] * chains
    for temperature, evaluations, new_round in _slices(search, chains):
        if new_round:
            found = _best(search)
            order = order_of(search.problem, found.schedule)
            for chain in range(chains):
                annealers.restart(chain, found.placement, order)
        before = annealers.evaluations
        annealers.run(temperature * scale, evaluations, _slice_seconds(search), search.threads)
        search.evaluations += annealers.evaluations - before
        for chain in range(chains):
            feasible, cost, placement, order = annealers.best(chain)
            if (not feasible, cost) < known[chain]:
                known[chain] = not feasible, cost
                search.offer(placement, order)
        search.report()
        if search.problem.objective == "throughput" and _best(search).feasible:
            return


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
        evaluations = max(1, _evaluations(search, search.threads) // 10)
        annealers.run(0.0, evaluations, SLICE, search.threads)
        rate = (annealers.evaluations - before) / max(search.seconds - begin, 1e-6)
        expected = rate * (search.time_limit - search.seconds)
    return min(1.0, max(0.0, expected) / (EVALUATIONS_TO_RECOVER * search.problem.n))


def _balance(search: Search) -> None:
    """Annealing of the busiest device or channel; order plays no part."""
    if (search.problem.allowed.sum(axis=1) == 1).all():
        return
    found = _best(search)
    chains = _chains(search)
    core = search.simulator.core
    line = pipeline_order(search.problem)
    balancers = _core.make_balancers(core, search.seed, chains, found.placement, line)
    scale = found.value / 3
    known = [(True, math.inf)] * chains
    for temperature, evaluations, new_round in _slices(search, chains):
        if new_round:
            for chain in range(chains):
                balancers.restart(chain, _best(search).placement)
        before = balancers.evaluations
        balancers.run(temperature * scale, evaluations, _slice_seconds(search), search.threads)
        search.evaluations += balancers.evaluations - before
        for chain in range(chains):
            fits, period, placement = balancers.best(chain)
            if (not fits, period) < known[chain]:
                known[chain] = not fits, period
                search.offer(placement, np.array(search.problem.graph.order, np.int32))
        search.report()


def _best(search: Search) -> Found:
    assert search.best is not None, "a rule has offered a plan"
    return search.best


def _chains(search: Search) -> int:
    return CHAINS if search.time_limit is None else search.threads


def _slices(search: Search, chains: int) -> Iterator[tuple[float, int, bool]]:
    """Temperature (relative), evaluations a chain and whether a round begins, until the budget ends
    or a slice evaluates nothing."""
    begin, current, before = 1 - search.left(), -1, -1
    while not search.finished() and search.evaluations > before:
        before = search.evaluations
        done = (1 - search.left() - begin) / max(1 - begin, 1e-9)
        now = next((r for r, end in enumerate(ROUNDS) if done < end), len(ROUNDS) - 1)
        first = ROUNDS[now - 1] if now else 0.0
        within = (done - first) / (ROUNDS[now] - first)
        temperature = HOTTEST * (COLDEST / HOTTEST) ** within
        yield temperature, _evaluations(search, chains), now > current
        current = now


def _slice_seconds(search: Search) -> float:
    """Without a time limit the clock must not decide."""
    if search.time_limit is None:
        return math.inf
    return max(0.0, min(SLICE, search.time_limit - search.seconds))


def _evaluations(search: Search, chains: int) -> int:
    """What one chain may spend in a slice."""
    if search.evaluation_limit is None:
        return 2**31
    left = search.evaluation_limit - search.evaluations
    if search.time_limit is not None:
        return max(1, left // chains)
    return max(1, min(left, search.evaluation_limit // SLICES) // chains)
