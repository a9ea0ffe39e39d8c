"""Distributions of random keys: their moments, the policy's proposals, and runs of BRKGA."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from situate import _core
from situate.data.cluster import Cluster, Link
from situate.data.problem import Problem
from situate.data.topology import edge_producers
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import BRKGA, evolution
from situate.solvers.evolutionary.regal.proposals import (
    anchor,
    beta_distributions,
    derived,
    distributions_around,
    for_features,
    plain,
    proposals,
    proposed,
    ranks,
    uniform,
)
from situate.solvers.evolutionary.regal.settings import SETTINGS, Proposed
from tests.solvers.evolutionary.regal.test_features import GRAPH, of
from tests.solvers.families import devices, families, fork, problem

# Categories become the means and variances of A.6.


@pytest.mark.parametrize("levels", [2, 5, 16])
def test_means_and_variances_are_the_papers(levels: int) -> None:
    pairs = np.array([(m, v) for m in range(levels) for v in range(levels)])
    alpha, beta = (x.astype(np.float64) for x in beta_distributions(pairs.ravel(), levels))
    mean = (pairs[:, 0] + 1) / (levels + 1)
    variance = mean * (1 - mean) * (pairs[:, 1] + 1) / (levels + 1)
    np.testing.assert_allclose(alpha / (alpha + beta), mean, rtol=1e-6)
    total = alpha + beta
    np.testing.assert_allclose(alpha * beta / (total**2 * (total + 1)), variance, rtol=1e-6)
    assert (np.minimum(alpha, beta) > 0).all()
    np.testing.assert_allclose(beta, mean * (1 - mean) ** 2 / variance - 1 + mean, rtol=1e-5)


# Ranked proposals shift the means of priorities away from ranks.


@pytest.mark.parametrize("levels", [3, 15])
def test_what_is_chosen_in_the_middle_leaves_the_mean_at_the_rank(levels: int) -> None:
    middle, rank = levels // 2, np.array([0.0, 0.25, 1.0])
    alpha, beta = distributions_around(rank, np.full(6, middle), levels)
    np.testing.assert_allclose(alpha / (alpha + beta), [0.01, 0.255, 0.99], rtol=1e-5)
    np.testing.assert_allclose(1 / (1 + alpha + beta), 0.5**3 / 8, rtol=1e-5)


def test_a_choice_shifts_the_mean_by_a_cube_and_keeps_it_between_zero_and_one() -> None:
    categories = np.array([0, 0, 0, 0, 2, 2, 2, 2])
    alpha, beta = distributions_around(np.array([0.0, 0.5, 0.5, 1.0]), categories, 3)
    np.testing.assert_allclose(
        alpha / (alpha + beta), [0.01, 0.5 - 1 / 64, 0.5 + 1 / 64, 0.99], rtol=1e-5
    )
    shares = 1 / (1 + alpha + beta)
    np.testing.assert_allclose(shares, np.repeat([0.25**3, 0.75**3], 2) / 8, rtol=1e-5)


@pytest.mark.parametrize("rules", ["situate", "regal"])
@pytest.mark.parametrize("objective", ["time", "memory"])
@pytest.mark.parametrize("family", families())
def test_an_op_has_a_higher_rank_than_what_waits_for_it(
    family: str, objective: str, rules: str
) -> None:
    small = problem(family, objective, rules)
    rank = ranks(small)
    assert (rank[edge_producers(small)] > rank[small.consumers]).all()
    np.testing.assert_allclose(np.sort(rank), np.arange(small.n) / max(1, small.n - 1))


PROPOSED = Proposed(placement=2, scheduling=16, crossover=4)


def keys_of(problem: Problem) -> int:
    return _core.search.key_count(Simulator(problem).core)


def test_priorities_are_around_ranks_where_they_are_proposed_so() -> None:
    actions = np.array([[7, 3], [7, 3], [7, 3]])
    proposed = Proposed(placement=0, scheduling=15, ranked=True)
    beta_draws = proposals(of(), actions, proposed, keys_of(of()), 0.7)
    expected = distributions_around(ranks(of()), actions.ravel(), 15)
    np.testing.assert_array_equal((beta_draws.alpha[6:9], beta_draws.beta[6:9]), expected)
    assert (np.diff(beta_draws.alpha[6:9]) != 0).any()


# Each key has the distribution that its op's action proposes.


def test_choices_are_mean_and_variance_of_every_key_then_crossover() -> None:
    assert PROPOSED.choices(2) == [2, 2, 2, 2, 16, 16, 4, 4, 4]
    assert Proposed(placement=0).choices(2) == [16, 16]
    assert Proposed(scheduling=0).choices(3) == [2] * 6
    assert Proposed(placement=0, transfers=8, crossover=4).choices(1) == [16, 16, 8, 8, 4, 4]


def test_every_key_gets_what_was_chosen_for_it() -> None:
    """Op 1 is the anchor; the actions of op 2 are looked at."""
    actions = np.zeros((3, 9), np.int64)
    actions[2] = [0, 0, 1, 0, 15, 3, 0, 1, 3]
    beta_draws = proposals(of(), actions, PROPOSED, keys_of(of()), 0.7)
    affinity, priority = slice(4, 6), 6 + 2
    np.testing.assert_allclose(beta_draws.alpha[affinity], [2 / 3, 4 / 3], rtol=1e-6)
    np.testing.assert_allclose(beta_draws.beta[affinity], [4 / 3, 2 / 3], rtol=1e-6)
    total = 17 / 4 - 1
    assert beta_draws.alpha[priority] == pytest.approx(total * 16 / 17)
    assert beta_draws.beta[priority] == pytest.approx(total * 1 / 17)
    np.testing.assert_allclose(beta_draws.bias[affinity], [0.5 * (1 + 1 / 4), 0.5 * (1 + 2 / 4)])
    assert beta_draws.bias[priority] == 1


def test_transfers_of_a_tensor_get_what_was_chosen_for_its_producer() -> None:
    proposed = Proposed(placement=0, scheduling=0, transfers=4)
    actions = np.array([[3, 0], [0, 0], [1, 2]])
    beta_draws = proposals(of(), actions, proposed, keys_of(of()), 0.7)
    keys_of_transfers = beta_draws.alpha[9:].reshape(-1, 2), beta_draws.beta[9:].reshape(-1, 2)
    alpha, beta = beta_distributions(actions.ravel(), 4)
    for of_sent, of_ops in zip(keys_of_transfers, (alpha, beta), strict=True):
        sent = of().producer[: len(of_sent)]
        np.testing.assert_array_equal(of_sent, of_ops[sent][:, None].repeat(2, axis=1))
    assert len(set(of().producer[: len(keys_of_transfers[0])])) > 1
    assert (beta_draws.bias[9:] == np.float32(0.7)).all()


def test_transfers_stay_uniform_where_none_is_proposed() -> None:
    actions = np.ones((3, 9), np.int64)
    beta_draws = proposals(of(), actions, PROPOSED, keys_of(of()), 0.7)
    assert (beta_draws.alpha[9:] == 1).all()
    assert (beta_draws.beta[9:] == 1).all()
    assert (beta_draws.bias[9:] == np.float32(0.7)).all()
    assert len(beta_draws.alpha) == keys_of(of()) > 9


def test_what_is_not_proposed_stays_uniform() -> None:
    scheduling = proposals(
        of(), np.ones((3, 2), np.int64), Proposed(placement=0), keys_of(of()), 0.7
    )
    assert (scheduling.alpha[4:6] == 1).all()
    assert (scheduling.alpha[6:9] != 1).all()
    placement = proposals(
        of(), np.ones((3, 4), np.int64), Proposed(scheduling=0), keys_of(of()), 0.7
    )
    assert (placement.alpha[4:6] != 1).all()
    assert (placement.alpha[6:9] == 1).all()


# The anchor breaks the symmetry of devices, but only where there is one.


def test_the_longest_op_or_the_one_of_most_bytes_is_on_the_first_device() -> None:
    assert anchor(of()) == 1
    assert anchor(of("memory")) == 2
    beta_draws = uniform(of(), keys_of(of()), 0.7)
    drawn = np.random.default_rng(0).beta(beta_draws.alpha[2:4], beta_draws.beta[2:4], (1000, 2))
    assert (drawn[:, 0] > drawn[:, 1]).all()


def test_devices_that_differ_are_not_exchanged() -> None:
    assert anchor(Problem(fork(5), devices(1, 1))) is not None
    assert anchor(Problem(fork(5), devices(1, 2))) is None
    pinned = Problem(fork(5, device="d1"), devices(1, 1))
    assert anchor(pinned) is None
    beta_draws = uniform(pinned, keys_of(pinned), 0.7)
    assert (beta_draws.alpha == 1).all()


@pytest.mark.parametrize(
    ("links", "alike"),
    [
        ((Link("*", "*", 1.0),), True),
        ((Link("*", "*", 1.0, channel="one"),), True),
        ((Link("*", "*", 1.0), Link("d0", "d1", 1.0, channel="bus")), False),
        ((Link("*", "*", 1.0, channel="{from} up"),), False),
    ],
)
def test_devices_that_share_channels_with_some_only_are_not_exchanged(
    links: tuple[Link, ...], alike: bool
) -> None:
    three = Cluster("three", devices(1, 1, 1).devices, links)
    assert (anchor(Problem(fork(5), three)) is not None) == alike
    assert anchor(Problem(fork(5), three, rules="regal")) is not None


def test_one_device_is_the_first_one() -> None:
    assert anchor(Problem(GRAPH, Cluster.identical(1), rules="regal")) == 1


PAPER = SETTINGS["paper", "time"]


def simulator() -> Simulator:
    return Simulator(Problem(fork(12), devices(1, 1), rules="regal"))


# The three runs of BRKGA differ in their distributions alone.


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
