"""BRKGA-MP-IPR (C. E. Andrade et al., EJOR 289, 2021), with situate's `paper` settings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from situate.bench.peers.random_keys import RandomKeys, Spent
from situate.solvers.evolutionary.settings import BRKGA
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Breed until the time is over."""
    from brkga_mp_ipr.algorithm import BrkgaMpIpr
    from brkga_mp_ipr.enums import Sense
    from brkga_mp_ipr.types import BrkgaParams

    chromosomes, settings = RandomKeys(search), BRKGA["paper"]

    class Decoder:
        def decode(self, chromosome: Any, rewrite: bool) -> float:
            return float(chromosomes.values(np.array([chromosome], np.float64))[0])

    members, elites, mutants = settings.sizes
    parameters = BrkgaParams()
    parameters.population_size = members
    parameters.elite_percentage, parameters.mutants_percentage = elites / members, mutants / members
    parameters.num_elite_parents, parameters.total_parents = 1, 2
    parameters.num_independent_populations = 1
    algorithm = BrkgaMpIpr(Decoder(), Sense.MINIMIZE, search.seed, chromosomes.count, parameters)
    algorithm.set_bias_custom_function(
        lambda rank: settings.bias if rank == 1 else 1 - settings.bias
    )
    with suppress(Spent):
        algorithm.initialize()
        while True:
            algorithm.evolve(1)
