"""Batch norms of an unplaced step whose statistics are those of all its slices, by the operators
that a placed step has for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from situate.runtime.lockstep.turns import Lockstep
from situate.torch_capture.patches.kernel_results import finest
from situate.torch_capture.patches.patched import replaced

if TYPE_CHECKING:
    import torch

COUNTER = "num_batches_tracked"
"""The name of the buffer in which PyTorch's modules count their calls."""


@contextmanager
def over_slices(model: torch.nn.Module, lockstep: Lockstep, slices: int) -> Iterator[None]:
    """A block in which batch norms that train take their statistics over slices that run in
    lockstep, and count these as one batch."""
    import torch

    by_itself = torch.batch_norm

    def norm(x: torch.Tensor, *given: Any) -> Any:
        trains = given[4]
        return _norm().apply(lockstep, x, *given) if trains else by_itself(x, *given)

    counters = [kept for name, kept in model.named_buffers() if name.endswith(COUNTER)]
    before = [kept.clone() for kept in counters]
    with replaced(torch, "batch_norm", norm):
        yield
    for kept, first in zip(counters, before, strict=True):
        kept.copy_(first + (kept - first) // slices)


@cache
def _norm() -> Any:
    import torch

    class Norm(torch.autograd.Function):
        """A slice's part of a norm: its arguments are those of `torch.batch_norm`."""

        @staticmethod
        def forward(ctx: Any, lockstep: Lockstep, *given: Any) -> torch.Tensor:
            x, weight, bias, *running, _, momentum, ctx.eps, _ = given
            kept = [each for each in running if each is not None]
            own = _statistics(x, [x, *(each for each in (weight, bias) if each is not None), *kept])
            mean, variance, ctx.count = lockstep.meet(
                own, lambda found: _of_batch(found, kept, momentum)
            )
            ctx.lockstep, ctx.has_bias = lockstep, bias is not None
            ctx.save_for_backward(x, weight, mean, variance)
            return _normalised(x, weight, bias, mean, variance, ctx.eps)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:
            x, weight, mean, variance = ctx.saved_tensors
            wanted = ctx.needs_input_grad[1]
            own, *parts = torch.ops.aten.native_batch_norm_backward(
                *(gradient, x, weight, mean, variance, None, None, False, ctx.eps),
                [wanted, True, True],
            )
            if wanted:
                factor, addend = ctx.lockstep.meet(
                    parts, lambda found: _terms(found, weight, variance, ctx.eps, ctx.count)
                )
                own = own + _normalised(x, factor, addend, mean, variance, ctx.eps)
            of_weight, of_bias = (
                part if has else None
                for part, has in zip(parts, (weight is not None, ctx.has_bias), strict=True)
            )
            return None, own, of_weight, of_bias, *[None] * 6

    return Norm


def _statistics(x: torch.Tensor, given: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """The mean, the variance and the count of each channel of a slice, in the type of the kernels'
    own statistics."""
    import torch

    others = [i for i in range(x.dim()) if i != 1]
    variance, mean = torch.var_mean(x.to(finest(given)), others, correction=0)
    return mean, variance, x.numel() // x.shape[1]


def _of_batch(
    found: Sequence[tuple[Any, ...]], running: Sequence[torch.Tensor], momentum: float
) -> tuple[Any, ...]:
    """The same of the batch; running averages are written over."""
    from situate.torch_capture.slices.norm_operators import batch_norm_statistics

    means, variances, counts = map(list, zip(*found, strict=True))
    mean, variance, *new = batch_norm_statistics(means, variances, counts, running, momentum)
    for old, averaged in zip(running, new, strict=True):
        old.copy_(averaged)
    return mean, variance, sum(counts)


def _terms(
    found: Sequence[Sequence[torch.Tensor]],
    weight: torch.Tensor | None,
    variance: torch.Tensor,
    eps: float,
    count: int,
) -> Any:
    from situate.torch_capture.slices.norm_operators import batch_norm_gradients

    weights, biases = map(list, zip(*found, strict=True))
    return batch_norm_gradients(weights, biases, weight, variance, eps, count)


def _normalised(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    import torch

    norm = torch.ops.aten._native_batch_norm_legit_no_training.default
    y: torch.Tensor = norm(x, weight, bias, mean, variance, 0.0, eps)[0]
    return y
