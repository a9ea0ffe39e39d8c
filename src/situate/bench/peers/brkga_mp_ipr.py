"""BRKGA-MP-IPR (C. E. Andrade et al., EJOR 289, 2021), with situate's `paper` settings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from situate.bench.peers.random_keys import BudgetExhausted, Keys, RandomKeys
from situate.solvers.evolutionary.brkga import BRKGA
from situate.solvers.search import Search


def run(search: Search) -> None:
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
    brkga.set_bias_custom_function(lambda rank: settings.bias if rank == 1 else 1 - settings.bias)
    return brkga
