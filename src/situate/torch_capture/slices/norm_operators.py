"""Two operators that combine all slices' statistics of a batch norm, and their part of its
gradient. PyTorch has them for CUDA alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import torch
from torch import Tensor


@torch.library.custom_op(
    "situate::batch_norm_statistics",
    mutates_args=(),
    schema="(Tensor[] means, Tensor[] variances, int[] counts, Tensor[] running, float momentum)"
    " -> Tensor[]",
)
def batch_norm_statistics(
    means: Sequence[Tensor],
    variances: Sequence[Tensor],
    counts: Sequence[int],
    running: Sequence[Tensor],
    momentum: float,
) -> list[Tensor]:
    """The mean and the variance (channels,) of each channel, then the new running averages (Chan,
    Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances,
    1979, Eq. 1.5).

    The slices are combined one after the other.

    Args:
        means, variances: (channels,) of each slice; the variance is biased.
        counts: numbers of a channel in each slice.
        running: the running mean and variance (channels,), or nothing.
        momentum: the weight of the new statistics in the running ones.
    """
    mean, variance, total = means[0], variances[0], counts[0]
    for other, its_variance, count in zip(means[1:], variances[1:], counts[1:], strict=True):
        total += count
        share, apart = count / total, other - mean
        mean = torch.add(mean, apart, alpha=share)
        # With the new slice's share s: (1 - s) variance + s its_variance + s (1 - s) apart^2.
        variance = torch.lerp(variance, its_variance, share)
        variance = torch.addcmul(variance, apart, apart, value=share * (1 - share))
    # Running variances are those of a sample.
    new = (mean, variance * (total / (total - 1))) if running else ()
    averaged = (
        torch.lerp(old, statistic.to(old.dtype), momentum)
        for old, statistic in zip(running, new, strict=True)
    )
    return [mean, variance, *averaged]


@batch_norm_statistics.register_fake
def _(
    means: Sequence[Tensor],
    variances: Sequence[Tensor],
    counts: Sequence[int],
    running: Sequence[Tensor],
    momentum: float,
) -> list[Tensor]:
    return [torch.empty_like(addends) for addends in (means[0], variances[0], *running)]


@torch.library.custom_op(
    "situate::batch_norm_gradients",
    mutates_args=(),
    schema="(Tensor[] weights, Tensor[] biases, Tensor? weight, Tensor variance, float eps, "
    "int count) -> Tensor[]",
)
def batch_norm_gradients(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    weight: Tensor | None,
    variance: Tensor,
    eps: float,
    count: int,
) -> list[Tensor]:
    """The factor a and the addend b (channels,) of the statistics' contribution a x' + b to the
    gradient of an input x.

    Here x' is x, normalised (Ioffe and Szegedy, Batch Normalization, ICML 2015, section 3).

    Args:
        weights, biases: (channels,) the gradients of the weight and of the bias in each slice.
        weight: (channels,); None stands for ones.
        variance: (channels,) of the batch.
        eps: is added to the variance.
        count: numbers of a channel in the batch.
    """
    # dx = w / sqrt(v + eps) (dy - (x' sum(dy x') + sum(dy)) / n). The kernel of inference computes
    # the first term; the sums are the gradients of weight and bias.
    scale = torch.rsqrt(variance + eps) / -count
    if weight is not None:
        scale = scale * weight
    return [(scale * reduce(add, addends)).to(variance.dtype) for addends in (weights, biases)]


@batch_norm_gradients.register_fake
def _(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    weight: Tensor | None,
    variance: Tensor,
    eps: float,
    count: int,
) -> list[Tensor]:
    return [torch.empty_like(variance) for _ in range(2)]
