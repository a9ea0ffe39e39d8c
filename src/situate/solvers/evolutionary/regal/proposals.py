"""Distributions of random keys from the policy's actions (REGAL, A.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.solvers.evolutionary.regal.distributions import (
    Keys,
    beta_distributions,
    distributions_around,
    ranks,
)
from situate.solvers.evolutionary.regal.encoding import op_bytes
from situate.solvers.evolutionary.regal.settings import Proposed

ALMOST_ONE = 1e4, 1e-2
"""Alpha and beta of a key that is almost surely one; swapped, of one that is almost surely zero."""


@dataclass(frozen=True, eq=False)
class Proposals:
    """Distributions and biases of keys.

    Attributes:
        alpha, beta: (keys,) of the beta distribution of each key.
        bias: (keys,) the probability that a child has its elite's key.
    """

    alpha: Keys
    beta: Keys
    bias: Keys


def uniform(problem: Problem, keys: int, bias: float) -> Proposals:
    """Uniform distributions with the `anchor` on the first device, and one bias for all keys."""
    alpha, beta = np.ones((2, keys), np.float32)
    guide = Proposals(alpha, beta, np.full(keys, bias, np.float32))
    _fix(problem, guide)
    return guide


def proposals(
    problem: Problem, actions: Ints, proposed: Proposed, keys: int, bias: float
) -> Proposals:
    """The distributions that the policy proposes.

    Args:
        problem: of n ops and d devices.
        actions: (n, c) the category of each of `Proposed.choices`.
        proposed: see `Proposed`.
        keys: number of keys of a chromosome.
        bias: default bias if the policy proposes none.
    """
    n, d = problem.n, problem.d
    guide = uniform(problem, keys, bias)
    of_ops = of_affinities, of_priorities = slice(0, n * d), slice(n * d, n * (d + 1))
    columns = iter(np.split(actions, np.cumsum(_widths(proposed, d))[:-1], axis=1))
    if levels := proposed.placement:
        pair = beta_distributions(next(columns).ravel(), levels)
        guide.alpha[of_affinities], guide.beta[of_affinities] = pair
    if levels := proposed.scheduling:
        pair = _of_priorities(problem, next(columns).ravel(), levels, proposed.ranked)
        guide.alpha[of_priorities], guide.beta[of_priorities] = pair
    if proposed.transfers:
        sent = slice(n * (d + 1), keys)
        # (keys of transfers, 2): a producer's choice holds for all its tensors and all devices.
        of_sent = next(columns)[problem.producer[: (keys - sent.start) // d].repeat(d)]
        pair = beta_distributions(of_sent.ravel(), proposed.transfers)
        guide.alpha[sent], guide.beta[sent] = pair
    if proposed.crossover:
        of_crossover = next(columns)
        categories = [of_crossover[:, :d].ravel(), of_crossover[:, d]]
        for part, category in zip(of_ops, categories, strict=True):
            guide.bias[part] = 0.5 * (1 + (category + 1) / proposed.crossover)
    _fix(problem, guide)
    return guide


def _of_priorities(
    problem: Problem, categories: Ints, levels: int, ranked: bool
) -> tuple[Keys, Keys]:
    """Alpha and beta (n,) from pairs of categories (2 n,)."""
    if ranked:
        return distributions_around(ranks(problem), categories, levels)
    return beta_distributions(categories, levels)


def _widths(proposed: Proposed, d: int) -> list[int]:
    """Numbers of action columns for placement, scheduling, transfers and crossover, if any."""
    widths = [
        (proposed.placement, 2 * d),
        (proposed.scheduling, 2),
        (proposed.transfers, 2),
        (proposed.crossover, d + 1),
    ]
    return [width for levels, width in widths if levels]


def _fix(problem: Problem, guide: Proposals) -> None:
    """Put the anchor on the first device."""
    op = anchor(problem)
    if op is None:
        return
    (one, zero), first = ALMOST_ONE, op * problem.d
    others = slice(first + 1, first + problem.d)
    guide.alpha[first], guide.beta[first] = one, zero
    guide.alpha[others], guide.beta[others] = zero, one


def anchor(problem: Problem) -> int | None:
    """The op pinned to device 0 in every chromosome, which breaks the symmetry between identical
    devices; None if devices differ.

    It is the longest op, or for memory the op with the most bytes, including its tensors.
    """
    if not _interchangeable(problem):
        return None
    of_ops = op_bytes(problem).sum(axis=1) if problem.objective == "memory" else problem.fastest
    return int((problem.unit == problem.unit[of_ops.argmax()]).argmax())


def _interchangeable(problem: Problem) -> bool:
    """True if all permutations of the devices are equivalent."""
    between = ~np.eye(problem.d, dtype=bool)
    links = (problem.latency[between], problem.bandwidth[between])
    columns = (problem.seconds, problem.allowed[problem.unit], problem.capacity[None])
    return (
        all(np.all(rows == rows[:, :1]) for rows in columns)
        and all(np.all(of == of[:1]) for of in links)
        and (problem.d == 2 or _channels_alike(problem))
    )


def _channels_alike(problem: Problem) -> bool:
    """True if all pairs share one channel, or each pair has its own, per direction or for both."""
    between, channel = ~np.eye(problem.d, dtype=bool), problem.channel
    if not problem.rules.contention:
        return True
    count = len(np.unique(channel[between]))
    both_ways = 2 * count == between.sum() and np.array_equal(channel, channel.T)
    return count <= 1 or count == between.sum() or both_ways
