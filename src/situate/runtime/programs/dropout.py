"""Dropout on a CPU, rounded as eager PyTorch rounds it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The result and the mask of `aten.native_dropout`, by which PyTorch traces dropout.

    Eager PyTorch multiplies by noise of the input's type, which is 0 or 1 / (1 - p), rounded. The
    operator's own kernel multiplies by a mask and by 1 / (1 - p), which rounds otherwise.
    """
    import torch

    if not train or p in (0, 1):
        return torch.ops.aten.native_dropout.default(x, p, train)  # type: ignore[no-any-return]
    mask = torch.empty_like(x, dtype=torch.bool).bernoulli_(1 - p)
    return x * _noise(mask, 1 - p, x), mask


def dropout_backward(gradient: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The result of `aten.native_dropout_backward`; `scale` is 1 / (1 - p), or 0 where p is 1."""
    if not scale:
        return gradient * mask
    return gradient * _noise(mask, 1 / scale, gradient)


def _noise(mask: Tensor, share: float, like: Tensor) -> Tensor:
    """The mask divided by the share of numbers that it keeps, in the type of a tensor."""
    return mask * like.new_ones(()).div_(share)
