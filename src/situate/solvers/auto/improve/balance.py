"""Balancing: annealing of the busiest device or channel in steady pipelined operation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Ints, Placement
from situate.data.problem import Problem
from situate.data.topology import pipeline_order
from situate.schedule.memory import Lives, lives, seconds, steps, sweep
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import order_of
from situate.solvers.auto.improve.cooling import OVERLAPPED, chains_of, cooling, interval_seconds
from situate.solvers.auto.improve.moves import swap_devices
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

OFFERS_TO_BEGIN = 6
"""Largest number of offers at the end of the first interval."""


def orders_count(problem: Problem) -> bool:
    """True if the order of ops decides what fits: live tensors count, and some device cannot hold
    everything at once."""
    if problem.rules.memory == "persistent":
        return False
    everything = problem.persistent.sum() + problem.size.sum() + problem.workspace.max()
    return bool(everything > problem.capacity.min())


def weights(problem: Problem, schedule: Schedule) -> tuple[Ints, Ints]:
    """Weights (n,) of ops and the capacities (d,) that remain for them.

    A weight is the op's persistent bytes plus its output bytes that live at its device's peak. The
    capacities exclude the other bytes at the peak.
    """
    by_step = problem.rules.memory == "step"
    clock = steps(schedule, problem) if by_step else seconds(schedule)
    lived = lives(schedule, problem, clock)
    at = _fullest(problem, lived)[lived.device]
    # (lives,) bytes of each life that are live at its device's peak.
    alive = np.where((lived.birth <= at) & (at < lived.death), lived.size, 0)
    op_bytes = problem.persistent.copy()
    # Lives are workspaces (n,), then tensors on their producers' devices, then copies elsewhere.
    # Only the tensors on their producers' devices count for the op.
    np.add.at(op_bytes, problem.producer, alive[problem.n :][: len(problem.size)])
    on_device = np.zeros(problem.d, np.int64)
    np.add.at(on_device, schedule.placement, op_bytes)
    return op_bytes, problem.capacity - (schedule.peak - on_device)


def _fullest(problem: Problem, lived: Lives) -> NDArray[np.float64]:
    """(d,) the time of each device's peak; -1 for a device without tensors."""
    changes = sweep(lived)
    time = np.full(problem.d, -1.0)
    # Changes come by rising use, so the last write of a device is its peak.
    rising = np.argsort(changes.use, kind="stable")
    time[changes.device[rising]] = changes.time[rising]
    return time


def balance(search: Search) -> None:
    """Anneal the best plan's placement for the busiest load; orders matter only for memory."""
    problem = search.problem
    if (problem.allowed.sum(axis=1) == 1).all() or not search.budget.affords(OFFERS_TO_BEGIN):
        return
    chains = _Chains(search)
    # A unit of temperature of the size of a move's change, which is not sampled here.
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
            # Costs under the old weights are not comparable with the next ones.
            self._best_costs[chain] = True, math.inf
