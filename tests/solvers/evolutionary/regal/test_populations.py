"""The runs of BRKGA around the network."""

from __future__ import annotations

from math import inf

import numpy as np

from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import evolution
from situate.solvers.evolutionary.regal.populations import derived, for_features, plain, proposed
from situate.solvers.evolutionary.regal.settings import SETTINGS
from situate.solvers.evolutionary.settings import BRKGA
from tests.solvers.families import devices, fork

PAPER = SETTINGS["paper", "time"]


def simulator() -> Simulator:
    return Simulator(Problem(fork(12), devices(1, 1), rules="regal"))


def test_the_plain_one_is_brkga_as_the_method_runs_it() -> None:
    ours = plain(simulator(), PAPER, 3)
    theirs = evolution(simulator(), BRKGA["paper"], goal="time", seed=3)
    for population in (ours, theirs):
        population.run(300, inf, 1)
    np.testing.assert_array_equal(ours.population()[0], theirs.population()[0])


def test_the_anchor_stays_on_the_first_device() -> None:
    population = for_features(simulator(), PAPER, 0)
    population.run(400, inf, 1)
    shares, _ = population.expectation()
    assert shares[0].tolist() == [1, 0]
    assert (shares[1:, 0] < 1).any()


def test_proposals_decide_where_ops_are() -> None:
    """All ops but the anchor lean to the second device."""
    actions = np.tile([0, 0, 1, 0, 0, 0], (12, 1))
    population = proposed(simulator(), PAPER, actions, 0)
    population.run(100, inf, 1)
    shares, _ = population.expectation()
    assert shares[1:, 1].mean() > 0.7


def test_seeds_of_other_purposes_are_others() -> None:
    seeds = [derived(0), derived(0, 1), derived(0, 1, 2), derived(1, 1)]
    assert len(set(seeds)) == 4
    assert derived(5, 1) == derived(5, 1)
