"""BRKGA of two packages, with situate's `paper` settings; situate's core decodes chromosomes.

BRKGA-MP-IPR: C. E. Andrade et al., EJOR 289, 2021.
pymoo: J. Blank and K. Deb, IEEE Access 8, 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.solvers.evolutionary.brkga import BRKGA
from situate.solvers.search import Search

# Random keys as plans, for genetic algorithms of other packages.
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
        # Above the value of every feasible plan.
        self._unfit = problem.serial_seconds + 1.0 if problem.objective == "time" else 2.0**62

    def values(self, keys: Keys) -> Keys:
        """The values (k,) of chromosomes (k, count); plans that do not fit are above those that
        fit.

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


# BRKGA-MP-IPR (C. E. Andrade et al., EJOR 289, 2021), with situate's `paper` settings.
def run_brkga_mp_ipr(search: Search) -> None:
    """Breed until the time is over."""
    chromosomes = RandomKeys(search)
    breeding = algorithm(
        lambda keys: float(chromosomes.values(keys[None])[0]), chromosomes.count, search.seed
    )
    with suppress(BudgetExhausted):
        breeding.initialize()
        while True:
            breeding.evolve(1)


def algorithm(value: Callable[[Keys], float], count: int, seed: int) -> Any:
    """The package's own object, yet to be initialised.

    Args:
        value: from a chromosome (count,) of keys between 0 and 1 to its value.
        count: keys of a chromosome.
        seed: of all draws.
    """
    from brkga_mp_ipr.algorithm import BrkgaMpIpr
    from brkga_mp_ipr.enums import Sense
    from brkga_mp_ipr.types import BrkgaParams

    class Decoder:
        def decode(self, chromosome: Any, rewrite: bool) -> float:
            return value(np.array(chromosome, np.float64))

    settings = BRKGA["paper"]
    members, elites, mutants = settings.sizes
    parameters = BrkgaParams()
    parameters.population_size = members
    parameters.elite_percentage, parameters.mutants_percentage = elites / members, mutants / members
    parameters.num_elite_parents, parameters.total_parents = 1, 2
    parameters.num_independent_populations = 1
    brkga = BrkgaMpIpr(Decoder(), Sense.MINIMIZE, seed, count, parameters)
    # Rank 1 is the elite parent, rank 2 the other.
    brkga.set_bias_custom_function(lambda rank: settings.bias if rank == 1 else 1 - settings.bias)
    return brkga


# BRKGA of pymoo (J. Blank and K. Deb, IEEE Access 8, 2020), with situate's `paper` settings.
def run_pymoo(search: Search) -> None:
    """Breed until the time is over."""
    chromosomes = RandomKeys(search)
    with suppress(BudgetExhausted):
        breed(chromosomes.values, chromosomes.count, search.seed, ("n_gen", 2**31))


def breed(
    values: Callable[[Keys], Keys],
    count: int,
    seed: int,
    termination: tuple[str, int],
    eliminate_duplicates: bool = False,
) -> float:
    """The smallest value that is found.

    Args:
        values: from chromosomes (k, count) of keys between 0 and 1 to their values (k,).
        count: keys of a chromosome.
        seed: of all draws.
        termination: as pymoo takes it, such as `("n_evals", 5000)`.
        eliminate_duplicates: pymoo's own default is to look for them, which takes longer than a
            fast evaluation and finds none.
    """
    from pymoo.algorithms.soo.nonconvex.brkga import BRKGA as Algorithm
    from pymoo.core.problem import Problem
    from pymoo.optimize import minimize

    class Placement(Problem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=count, n_obj=1, xl=0.0, xu=1.0)

        def _evaluate(self, x: Keys, out: dict[str, Any], *_: Any, **__: Any) -> None:
            out["F"] = values(x)[:, None]

    settings = BRKGA["paper"]
    members, elites, mutants = settings.sizes
    algorithm = Algorithm(
        elites,
        members - elites - mutants,
        mutants,
        bias=settings.bias,
        eliminate_duplicates=eliminate_duplicates,
    )
    result = minimize(Placement(), algorithm, termination, seed=seed)
    return float(result.F[0])
