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
from situate.solvers.search import Candidate, Search

OFFERS_TO_BEGIN = 6
"""Offers that the first interval ends with, at most."""


def balance(search: Search) -> None:
    """Anneal the placement of the best plan; order plays a part where it decides what fits."""
    problem = search.problem
    if (problem.allowed.sum(axis=1) == 1).all() or not search.affords(OFFERS_TO_BEGIN):
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
    """Balancers, and of each the best that was offered.

    Where live tensors count, what ops hold is their bytes in the plan that was offered last: the
    balancers know of memory what is true near that plan.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self.count = chains_of(search)
        self._weighs = orders_count(search.problem)
        self._best_costs = [(True, math.inf)] * self.count
        line, start = pipeline_order(search.problem), search.incumbent.placement
        core = search.simulator.core
        self._balancers = _core.make_load_annealers(core, search.seed, self.count, start, line)

    def restart(self) -> None:
        """From the best plan."""
        for chain in range(self.count):
            self._balancers.restart(chain, self._search.incumbent.placement)
            self._weigh(chain, self._search.incumbent)

    def run(self, temperature: float, evaluations: int) -> None:
        """One interval of the cooling."""
        search, before = self._search, self._balancers.evaluations
        try:
            self._balancers.run(temperature, evaluations, interval_seconds(search), search.threads)
        finally:
            search.evaluations += self._balancers.evaluations - before

    def offer(self) -> None:
        """Offer the placements that chains have found since."""
        for chain in range(self.count):
            fits, period, placement = self._balancers.best(chain)
            if (not fits, period) < self._best_costs[chain]:
                self._best_costs[chain] = not fits, period
                self._weigh(chain, self._decoded(placement))

    def _decoded(self, placement: Placement) -> Candidate:
        """In the order of the graph and, where orders count, in that of the best plan: as its ops
        start and, where it does not fit so, as they were ranked."""
        search, incumbent = self._search, self._search.incumbent
        # The order changes no period, but what is live at once.
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
