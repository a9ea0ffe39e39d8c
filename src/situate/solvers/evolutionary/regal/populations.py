"""The three runs of BRKGA around the network: plain, for its features, and with its proposals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from situate import _core
from situate.data.arrays import Ints
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import evolution
from situate.solvers.evolutionary.regal.proposals import Proposals, proposals, uniform
from situate.solvers.evolutionary.regal.settings import RegalSettings
from situate.solvers.evolutionary.settings import BRKGA


def plain(simulator: Simulator, settings: RegalSettings, seed: int) -> _core.search.Brkga:
    """BRKGA with common settings and the same decoder: the reference of the reward."""
    common = replace(BRKGA["paper"], decoder=settings.breeding.decoder)
    return evolution(simulator, common, goal=simulator.problem.objective, seed=seed)


def for_features(simulator: Simulator, settings: RegalSettings, seed: int) -> _core.search.Brkga:
    """BRKGA with uniform distributions and the anchor on the first device."""
    keys = _core.search.key_count(simulator.core)
    guide = uniform(simulator.problem, keys, settings.breeding.bias)
    return _guided(simulator, settings, guide, seed)


def proposed(
    simulator: Simulator, settings: RegalSettings, actions: Ints, seed: int
) -> _core.search.Brkga:
    """BRKGA with the distributions of the policy's actions (n, c)."""
    keys = _core.search.key_count(simulator.core)
    guide = proposals(simulator.problem, actions, settings.proposed, keys, settings.breeding.bias)
    # A seed of its own, so that its chromosomes share no draws with those of the features.
    return _guided(simulator, settings, guide, derived(seed, 1))


def derived(seed: int, *purpose: int) -> int:
    """An independent seed for each purpose."""
    words = np.random.SeedSequence(seed, spawn_key=purpose).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))


def _guided(
    simulator: Simulator, settings: RegalSettings, guide: Proposals, seed: int
) -> _core.search.Brkga:
    return evolution(
        simulator,
        settings.breeding,
        goal=simulator.problem.objective,
        seed=seed,
        proposals=(guide.alpha, guide.beta),
        biases=guide.bias,
    )
