"""Entropy and divergence of the distributions of a policy's stages."""

from __future__ import annotations

from torch import Tensor


def entropy(log_probs: Tensor) -> Tensor:
    """Mean over samples and groups, in nats, of log-probabilities (k, g, d)."""
    # p log p is 0 at p = 0, but 0 * -inf is NaN, in the value and in the gradient: mask first.
    terms = log_probs.exp() * log_probs.masked_fill(log_probs.isneginf(), 0.0)
    return -terms.sum(2).mean()


def divergence(old: Tensor, new: Tensor) -> Tensor:
    """Mean over samples and groups of D_KL(old || new), in nats, of log-probabilities (k, g, d)
    that are minus infinity at the same places."""
    # -inf - (-inf) is NaN where a device is not allowed; such devices count nothing.
    differences = (old - new).masked_fill(old.isneginf(), 0.0)
    return (old.exp() * differences).sum(2).mean()
