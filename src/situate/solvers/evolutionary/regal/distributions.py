"""Beta distributions of random keys from categories: as in REGAL, A.6, and around ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.bounds.paths import Paths
from situate.data.arrays import Floats, Ints
from situate.data.problem import Problem
from situate.data.topology import places

Keys = NDArray[np.float32]

EDGE = 0.01
"""Least mean of a key around a rank; the greatest is one minus this."""


def beta_distributions(categories: Ints, levels: int) -> tuple[Keys, Keys]:
    """Alpha and beta (k,) of pairs (2 k,) of a quantised mean and a quantised variance.

    With m and v the pair and k the levels, the mean is mu = (m + 1) / (k + 1) and the variance
    mu (1 - mu) (v + 1) / (k + 1).
    """
    return _of_moments(*_steps(categories, levels))


def distributions_around(rank: Floats, categories: Ints, levels: int) -> tuple[Keys, Keys]:
    """Alpha and beta (n,) of keys around ranks (n,), from pairs (2 n,) of a quantised shift and a
    quantised variance.

    With x = (m + 1) / (k + 1) and y = (v + 1) / (k + 1) the mean mu is (2 x - 1)^3 / 8 away from
    the rank, and the variance mu (1 - mu) y^3 / 8. The cubes favour small steps around the rank.
    """
    shift, share = _steps(categories, levels)
    mean = EDGE + (1 - 2 * EDGE) * rank + (2 * shift - 1) ** 3 / 8
    return _of_moments(mean.clip(EDGE, 1 - EDGE), share**3 / 8)


def _steps(categories: Ints, levels: int) -> Floats:
    """(2, k) the categories of pairs (2 k,), scaled to between 0 and 1."""
    return np.asarray((categories.reshape(-1, 2).T + 1) / (levels + 1))


def _of_moments(mean: Floats, share: Floats) -> tuple[Keys, Keys]:
    """Alpha and beta (k,) of means mu (k,) and of variances, shares (k,) of mu (1 - mu)."""
    # beta = mu (1 - mu)^2 / variance - 1 + mu and alpha = beta mu / (1 - mu).
    total = 1 / share - 1
    return (mean * total).astype(np.float32), ((1 - mean) * total).astype(np.float32)


def ranks(problem: Problem) -> Floats:
    """(n,) urgency of ops from 0 to 1, by the longest path after them.

    Ties, and all ops for memory, rank by their place in a depth-first order.
    """
    n, place = problem.n, places(problem.depth_first)
    tail = Paths.of(problem).tail if problem.objective == "time" else np.zeros(n)
    return places(np.lexsort((-place, tail))) / max(1, n - 1)
