"""`local_search`: greedy moves of one op at a time, from random plans (Paliwal et al., REGAL, ICLR
2020, section 5.2 and A.10)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from situate import _core
from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.data.topology import op_devices, pipeline_order, topological_by
from situate.solvers.search import Search

EVALUATIONS_AN_OP = 200
"""Moves per op before the search restarts from another plan."""

CHAINS = 1
"""Chains of a search that is limited by evaluations alone, whatever its threads: one chain gets the
furthest. With a time limit there is one per thread."""

INTERVAL = 0.05
"""Wall seconds between two checks of the clock."""

CHAIN_LIMIT = 2**31
"""Largest number of moves of a chain between two offers of its best plan."""


@dataclass(frozen=True, eq=False)
class _Plan:
    placement: Placement
    order: Order


def run(search: Search) -> None:
    """Improve several random plans at once, and restart from new ones until the budget ends."""
    generator = np.random.default_rng(search.seed)
    first = _random_plan(search.problem, generator)
    search.offer(first.placement, first.order)
    if search.finished():
        return
    climb = _Climb(search, first)
    while climb.go(EVALUATIONS_AN_OP * search.problem.n):
        climb.restart(generator)


class _Climb:
    """Chains of greedy moves."""

    def __init__(self, search: Search, first: _Plan) -> None:
        self._search = search
        self._count = CHAINS if search.budget.time_limit is None else search.threads
        self._chains = _chains(search, first, self._count)
        self._best_costs = [(True, math.inf)] * self._count

    def go(self, moves: int) -> bool:
        """Try so many moves in every chain, keep those that are no worse, and offer the best plans.

        Returns False if the budget ended first, or there is nothing to move.
        """
        try:
            while (
                moves > 0
                and not self._search.finished()
                and self._search.budget.affords(self._count)
            ):
                moves_made = self._run(min(moves, self._allowed()))
                if not moves_made:
                    break
                # At least one, so that the loop ends.
                moves -= max(1, moves_made // self._count)
        finally:
            self._offer()
        return moves <= 0 and not self._search.finished()

    def restart(self, generator: Generator) -> None:
        """Restart all chains from new random plans."""
        for chain in range(self._count):
            plan = _random_plan(self._search.problem, generator)
            if isinstance(self._chains, _core.search.LoadAnnealers):
                self._chains.restart(chain, plan.placement)
            else:
                self._chains.restart(chain, plan.placement, plan.order)

    def _run(self, moves: int) -> int:
        """Run all chains for an interval; the number of moves that they tried."""
        search, before = self._search, self._chains.evaluations
        try:
            self._chains.run(0.0, moves, self._seconds(), search.threads)
        finally:
            moves_made = self._chains.evaluations - before
            search.budget.evaluations += moves_made
        search.report()
        return moves_made

    def _allowed(self) -> int:
        limit = self._search.budget.evaluation_limit
        budget = CHAIN_LIMIT if limit is None else limit - self._search.budget.evaluations
        return max(1, min(CHAIN_LIMIT, budget // self._count))

    def _seconds(self) -> float:
        """Without a time limit the clock must not decide."""
        limit = self._search.budget.time_limit
        return (
            math.inf
            if limit is None
            else max(0.0, min(INTERVAL, limit - self._search.budget.seconds))
        )

    def _offer(self) -> None:
        for chain, before in enumerate(self._best_costs):
            best = self._chains.best(chain)
            feasible, cost, placement = best[:3]
            if (not feasible, cost) < before:
                self._best_costs[chain] = not feasible, cost
                by_graph = np.array(self._search.problem.graph.order, np.int32)
                self._search.offer(placement, best[3] if len(best) > 3 else by_graph)


def _chains(
    search: Search, first: _Plan, count: int
) -> _core.search.Annealers | _core.search.LoadAnnealers:
    """Chains of single moves: annealing at temperature 0 is greedy."""
    core, problem = search.simulator.core, search.problem
    if problem.objective == "throughput":
        line = pipeline_order(problem)
        return _core.search.make_load_annealers(
            core, search.seed, count, first.placement, line, single_moves=True
        )
    return _core.search.make_annealers(
        core,
        problem.objective,
        search.seed,
        count,
        first.placement,
        first.order,
        single_moves=True,
    )


def _random_plan(problem: Problem, generator: Generator) -> _Plan:
    """A random device for every unit, uniform over those that may run it, and a random topological
    order."""
    # (units, d) random keys where a unit may run; each unit takes the device of its largest key.
    keys = np.where(problem.allowed, generator.random(problem.allowed.shape), -1.0)
    return _Plan(op_devices(problem, keys.argmax(axis=1)), _random_order(problem, generator))


def _random_order(problem: Problem, generator: Generator) -> Order:
    """A topological order in which a random ready op is next."""
    return topological_by(problem, generator.random(problem.n))
