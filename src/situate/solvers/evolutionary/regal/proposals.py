"""From the policy's actions to BRKGA: distributions of random keys (REGAL, A.6), and the three runs
of BRKGA around the network."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.bounds.paths import Paths
from situate.data.arrays import Floats, Ints
from situate.data.problem import Problem
from situate.data.topology import places
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import BRKGA, BrkgaSettings, Linkage, evolution
from situate.solvers.evolutionary.regal.features import op_bytes
from situate.solvers.evolutionary.regal.settings import Proposed, RegalSettings

Keys = NDArray[np.float32]

EDGE = 0.01
"""Least mean of a key around a rank; the greatest is one minus this."""

UNSURE, SMALLEST = 0.02, 1e-6
"""Least share of chromosomes in which an op may still be elsewhere, and least divisor of odds."""

ALMOST_ONE = 1e4, 1e-2
"""Alpha and beta of a key that is almost surely one; swapped, of one that is almost surely zero."""


def plain(simulator: Simulator, settings: RegalSettings, seed: int) -> _core.search.Brkga:
    """BRKGA with common settings and the same decoder: the reference of the reward."""
    common = replace(BRKGA["paper"], decoder=settings.breeding.decoder)
    return evolution(simulator, common, goal=simulator.problem.objective, seed=seed)


def for_features(simulator: Simulator, settings: RegalSettings, seed: int) -> _core.search.Brkga:
    """BRKGA with uniform distributions and the anchor on the first device."""
    keys = _core.search.key_count(simulator.core)
    guide = uniform(simulator.problem, keys, settings.breeding.bias)
    return _bred(simulator, settings.breeding, guide, seed)


def proposed(
    simulator: Simulator, settings: RegalSettings, actions: Ints, seed: int
) -> _core.search.Brkga:
    """BRKGA with the distributions of the policy's actions (n, c)."""
    keys = _core.search.key_count(simulator.core)
    guide = proposals(simulator.problem, actions, settings.proposed, keys, settings.breeding.bias)
    return guided(simulator, settings.breeding, guide, seed)


def guided(
    simulator: Simulator, breeding: BrkgaSettings, guide: Proposals, seed: int
) -> _core.search.Brkga:
    """BRKGA with proposals."""
    # A seed of its own, so that its chromosomes share no draws with those of the features.
    return _bred(simulator, breeding, guide, derived(seed, 1))


def derived(seed: int, *purpose: int) -> int:
    """An independent seed for each purpose."""
    words = np.random.SeedSequence(seed, spawn_key=purpose).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))


def _bred(
    simulator: Simulator, breeding: BrkgaSettings, guide: Proposals, seed: int
) -> _core.search.Brkga:
    return evolution(
        simulator,
        breeding,
        goal=simulator.problem.objective,
        seed=seed,
        proposals=(guide.alpha, guide.beta),
        biases=guide.bias,
        linkage=guide.linkage,
    )


@dataclass(frozen=True, eq=False)
class Proposals:
    """Distributions and biases of keys.

    Attributes:
        alpha, beta: (keys,) of the beta distribution of each key.
        bias: (keys,) the probability that a child has its elite's key.
        linkage: edges whose ends are bred together; None for ops that are bred one by one.
    """

    alpha: Keys
    beta: Keys
    bias: Keys
    linkage: Linkage | None = None


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
        # Means and variances alternate in a row, so flattened rows are pairs.
        pair = beta_distributions(next(columns).ravel(), levels)
        guide.alpha[of_affinities], guide.beta[of_affinities] = pair
    if levels := proposed.scheduling:
        pair = _of_priorities(problem, next(columns).ravel(), levels, proposed.ranked)
        guide.alpha[of_priorities], guide.beta[of_priorities] = pair
    if proposed.transfers:
        of_transfers = slice(n * (d + 1), keys)
        # (keys of transfers, 2): a producer's choice holds for all its tensors and all devices.
        of_producers = next(columns)[problem.producer[: (keys - of_transfers.start) // d].repeat(d)]
        pair = beta_distributions(of_producers.ravel(), proposed.transfers)
        guide.alpha[of_transfers], guide.beta[of_transfers] = pair
    if proposed.crossover:
        of_crossover = next(columns)
        categories = [of_crossover[:, :d].ravel(), of_crossover[:, d]]
        for part, category in zip(of_ops, categories, strict=True):
            # From just above 1/2 up to 1: a key of the elite is never the less likely one.
            guide.bias[part] = 0.5 * (1 + (category + 1) / proposed.crossover)
    # The anchor comes last because it overrides the proposals.
    _fix(problem, guide)
    return guide


def leaning(problem: Problem, guide: Proposals, beside: Keys, concentration: float) -> Proposals:
    """Proposals whose affinities favour the anchor's device, or the other devices.

    The affinity of an op to each device has a beta distribution with alpha + beta =
    `concentration`. If p is the probability that the op is on the anchor's device, its mean is p
    for the first of d devices and (1 - p) / (d - 1) for each of the others.

    Args:
        problem: of n ops and d devices, which are interchangeable: without an `anchor`, `guide`
            is the result.
        beside: (n,) the probability for two devices. Each further device divides its odds, so that
            one half, for two devices, becomes 1 / d.
    """
    n, d = problem.n, problem.d
    if anchor(problem) is None or d < 2:
        return guide
    odds = beside / (1 - beside).clip(SMALLEST) / (d - 1)
    first = (odds / (1 + odds)).clip(UNSURE, 1 - UNSURE)
    mean = np.repeat(((1 - first) / (d - 1))[:, None], d, axis=1)
    mean[:, 0] = first
    alpha, beta = guide.alpha.copy(), guide.beta.copy()
    alpha[: n * d], beta[: n * d] = (concentration * of.ravel() for of in (mean, 1 - mean))
    result = replace(guide, alpha=alpha, beta=beta)
    _fix(problem, result)
    return result


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
    # The decoder takes the device with the largest key.
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
    # The decoder reads the device of a whole unit from the keys of its first op.
    return int((problem.unit == problem.unit[of_ops.argmax()]).argmax())


def _interchangeable(problem: Problem) -> bool:
    """True if all permutations of the devices are equivalent."""
    # Times and capacities must agree between devices, links between all ordered pairs of them.
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
    # A channel for each pair of devices, whatever the direction.
    both_ways = 2 * count == between.sum() and np.array_equal(channel, channel.T)
    return count <= 1 or count == between.sum() or both_ways


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
    # A shift may leave the interval, and beta distributions degenerate towards its ends.
    return _of_moments(mean.clip(EDGE, 1 - EDGE), share**3 / 8)


def _steps(categories: Ints, levels: int) -> Floats:
    """(2, k) the categories of pairs (2 k,), scaled to between 0 and 1."""
    return np.asarray((categories.reshape(-1, 2).T + 1) / (levels + 1))


def _of_moments(mean: Floats, share: Floats) -> tuple[Keys, Keys]:
    """Alpha and beta (k,) of means mu (k,) and of variances, shares (k,) of mu (1 - mu)."""
    # Solved from variance = mu (1 - mu) / (alpha + beta + 1):
    # beta = mu (1 - mu)^2 / variance - 1 + mu and alpha = beta mu / (1 - mu).
    total = 1 / share - 1
    return (mean * total).astype(np.float32), ((1 - mean) * total).astype(np.float32)


def ranks(problem: Problem) -> Floats:
    """(n,) urgency of ops from 0 to 1, by the longest path after them.

    Ties, and all ops for memory, rank by their place in a depth-first order.
    """
    n, place = problem.n, places(problem.depth_first)
    tail = Paths.of(problem).tail if problem.objective == "time" else np.zeros(n)
    # `lexsort` sorts by its last key first. Of equally long paths, the earlier op is more urgent.
    return places(np.lexsort((-place, tail))) / max(1, n - 1)
