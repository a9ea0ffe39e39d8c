"""Balancing: annealing of the busiest device or channel in steady pipelined operation."""

from __future__ import annotations

import math

import numpy as np

from situate import _core
from situate.data.arrays import Placement
from situate.data.topology import pipeline_order
from situate.simulation.decoding import order_of
from situate.solvers.auto.cooling import OVERLAPPED, chains_of, cooling, interval_seconds
from situate.solvers.auto.device_swap import swap_devices
from situate.solvers.auto.memory.liveness import orders_count, weights
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

OFFERS_TO_BEGIN = 6
"""Largest number of offers at the end of the first interval."""


def balance(search: Search) -> None:
    """Anneal the best plan's placement for the busiest load; orders matter only for memory."""
    problem = search.problem
    if (problem.allowed.sum(axis=1) == 1).all() or not search.budget.affords(OFFERS_TO_BEGIN):
        return
    chains = _Chains(search)
    scale = search.incumbent.value / 3
    for temperature, evaluations, new_round in cooling(search, chains.count, OVERLAPPED):
        if new_round:
            swap_devices(search)
            chains.restart()
        try:
            chains.run(temperature * scale, evaluations)
        finally:
            chains.offer()
        search.report()


class _Chains:
    """Chains of load annealing, with the best cost that each has offered.

    If live tensors count, the weights of ops are their bytes in the last offered plan. So the
    chains' model of memory is accurate near that plan.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self.count = chains_of(search)
        self._weighs = orders_count(search.problem)
        self._best_costs = [(True, math.inf)] * self.count
        line, start = pipeline_order(search.problem), search.incumbent.placement
        core = search.simulator.core
        self._balancers = _core.search.make_load_annealers(
            core, search.seed, self.count, start, line
        )

    def restart(self) -> None:
        """Restart all chains from the incumbent."""
        for chain in range(self.count):
            self._balancers.restart(chain, self._search.incumbent.placement)
            self._weigh(chain, self._search.incumbent)

    def run(self, temperature: float, evaluations: int) -> None:
        """One interval of the cooling."""
        search, before = self._search, self._balancers.evaluations
        try:
            self._balancers.run(temperature, evaluations, interval_seconds(search), search.threads)
        finally:
            search.budget.evaluations += self._balancers.evaluations - before

    def offer(self) -> None:
        """Offer the placements of chains that have improved."""
        for chain in range(self.count):
            fits, period, placement = self._balancers.best(chain)
            if (not fits, period) < self._best_costs[chain]:
                self._best_costs[chain] = not fits, period
                self._weigh(chain, self._decoded(placement))

    def _decoded(self, placement: Placement) -> Candidate:
        """The best candidate of a placement over several orders.

        The graph's order comes first. If orders decide what fits, the incumbent's start order
        follows and, while nothing fits, the incumbent's own order.
        """
        search, incumbent = self._search, self._search.incumbent
        # The order does not change the period, only the live bytes.
        orders = [np.array(search.problem.graph.order, np.int32)]
        if self._weighs:
            orders += [order_of(search.problem, incumbent.schedule)]
        candidates = [search.offer(placement, order) for order in orders]
        if self._weighs and not any(candidate.feasible for candidate in candidates):
            candidates += [search.offer(placement, incumbent.order)]
        return min(candidates, key=lambda candidate: candidate.score)

    def _weigh(self, chain: int, candidate: Candidate) -> None:
        if self._weighs:
            self._balancers.weigh(chain, *weights(self._search.problem, candidate.schedule))
            self._best_costs[chain] = True, math.inf
