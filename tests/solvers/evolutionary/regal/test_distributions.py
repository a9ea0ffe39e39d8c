"""Distributions of keys against A.6, and around ranks."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.topology import edge_producers
from situate.solvers.evolutionary.regal.distributions import (
    beta_distributions,
    distributions_around,
    ranks,
)
from tests.solvers.families import families, problem


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
