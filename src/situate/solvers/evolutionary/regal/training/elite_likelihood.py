"""The likelihood of elites' keys under a policy: a signal for every key, where a reward is one for
all.

BRKGA selects chromosomes. A policy under which the keys of its elites are likely proposes what was
selected, as in the cross-entropy method.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

from situate.solvers.evolutionary.regal.proposals import beta_distributions
from situate.solvers.evolutionary.regal.settings import Proposed

INSIDE = 1e-3
"""Keys are taken to be at least so far from 0 and from 1, where densities may be infinite."""


def log_likelihood(log_probs: Sequence[Tensor], keys: Tensor, proposed: Proposed) -> Tensor:
    """The mean over elites and ops of the log-likelihood of an op's keys.

    Args:
        log_probs: (n, categories) of each choice, see `Proposed.choices`.
        keys: (elites, n, d + 1) affinities and priority of each op.
        proposed: see there; biases of crossover have no part in it.
    """
    devices = keys.shape[2] - 1
    levels = [proposed.placement] * devices + [proposed.scheduling]
    choices, total = iter(log_probs), torch.zeros(())
    for key, k in zip(keys.unbind(dim=2), levels, strict=True):
        if k:
            # (n, k, k): the logarithm of the probability of a mean and a variance.
            chosen = next(choices)[:, :, None] + next(choices)[:, None, :]
            density = _log_density(key, k)
            total = total + (chosen.flatten(1) + density).logsumexp(dim=2).mean()
    return total


def _log_density(keys: Tensor, levels: int) -> Tensor:
    """(elites, n, levels^2) of keys (elites, n) under each pair of a mean and a variance."""
    alpha, beta, normaliser = _distributions(levels)
    inside = keys.clamp(INSIDE, 1 - INSIDE)[:, :, None]
    return (alpha - 1) * inside.log() + (beta - 1) * (-inside).log1p() - normaliser


@cache
def _distributions(levels: int) -> tuple[Tensor, Tensor, Tensor]:
    """Alpha, beta (levels^2,) and the logarithm of the beta function of both."""
    pairs = np.indices((levels, levels)).reshape(2, -1).T.ravel()
    alpha, beta = (torch.from_numpy(part) for part in beta_distributions(pairs, levels))
    return alpha, beta, alpha.lgamma() + beta.lgamma() - (alpha + beta).lgamma()
