"""Random keys as plans, for genetic algorithms of other packages.

A chromosome holds the affinity of each unit to each device, then a priority for each op. Situate's
core evaluates them, so that a peer is only as slow as itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.solvers.search import Search

Keys = NDArray[np.float64]


class BudgetExhausted(Exception):
    """The time is over: raised through the peer's own loop."""


class RandomKeys:
    """Chromosomes of a search's problem, of n ops in u units and d devices.

    Attributes:
        count: keys of a chromosome, u d + n.

    Raises:
        SituateError: an objective or rules for which the core has no fast evaluation.
    """

    def __init__(self, search: Search) -> None:
        problem = search.problem
        if problem.objective == "throughput" or "calls" in search.decoders:
            raise SituateError("random keys are evaluated for time and memory of a step alone")
        self._search, self._best = search, np.inf
        self.count = problem.units * problem.d + problem.n
        self._unfit = problem.serial_seconds + 1.0 if problem.objective == "time" else 2.0**62

    def values(self, keys: Keys) -> Keys:
        """The values (k,) of chromosomes (k, count); whatever does not fit is above what fits.

        Raises:
            BudgetExhausted: the search's time is over.
        """
        search = self._search
        placements, priorities = self._decisions(keys)
        seconds, peaks = search.simulator.evaluate(placements, priorities, threads=search.threads)
        search.budget.evaluations += len(keys)
        excess = np.maximum(0, peaks - search.problem.capacity).sum(axis=1).astype(np.float64)
        values = seconds if search.problem.objective == "time" else peaks.max(axis=1).astype(float)
        values = np.where(excess > 0, self._unfit * (1 + excess), values)
        self._offer(values, placements, priorities)
        if search.finished():
            raise BudgetExhausted
        return np.asarray(values)

    def _decisions(self, keys: Keys) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Placements and priorities, each (k, n)."""
        problem = self._search.problem
        split = problem.units * problem.d
        affinity = keys[:, :split].reshape(len(keys), problem.units, problem.d)
        of_unit = np.where(problem.allowed, affinity, -1.0).argmax(axis=2)
        placements = of_unit[:, problem.unit].astype(np.int32)
        return placements, keys[:, split:].astype(np.float32)

    def _offer(
        self, values: Keys, placements: NDArray[np.int32], priorities: NDArray[np.float32]
    ) -> None:
        """Offer the best of a batch where it is the best so far."""
        best = int(values.argmin())
        if values[best] >= self._best:
            return
        self._best = float(values[best])
        order = np.argsort(-priorities[best], kind="stable").astype(np.int32)
        self._search.offer(placements[best], order, ["eager"])
