"""BRKGA of pymoo (J. Blank and K. Deb, IEEE Access 8, 2020), with situate's `paper` settings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from situate.bench.peers.random_keys import BudgetExhausted, Keys, RandomKeys
from situate.solvers.evolutionary.brkga import BRKGA
from situate.solvers.search import Search


def run(search: Search) -> None:
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
