"""BRKGA of pymoo (J. Blank and K. Deb, IEEE Access 8, 2020), with situate's `paper` settings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from situate.bench.peers.random_keys import Keys, RandomKeys, Spent
from situate.solvers.evolutionary.settings import BRKGA
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Breed until the time is over."""
    from pymoo.algorithms.soo.nonconvex.brkga import BRKGA as Algorithm
    from pymoo.core.problem import Problem
    from pymoo.optimize import minimize

    chromosomes = RandomKeys(search)

    class Placement(Problem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=chromosomes.count, n_obj=1, xl=0.0, xu=1.0)

        def _evaluate(self, x: Keys, out: dict[str, Any], *_: Any, **__: Any) -> None:
            out["F"] = chromosomes.values(x)[:, None]

    members, elites, mutants = BRKGA["paper"].sizes
    algorithm = Algorithm(
        elites,
        members - elites - mutants,
        mutants,
        bias=BRKGA["paper"].bias,
        eliminate_duplicates=False,
    )
    with suppress(Spent):
        minimize(Placement(), algorithm, ("n_gen", 2**31), seed=search.seed)
