"""FLOPs of the operators of a captured step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from situate.readers.products import PRODUCTS, convolution_backward, grouped_product

if TYPE_CHECKING:
    import torch


def formula(packet: object) -> Callable[..., int] | None:
    """The FLOP formula of an operator of PyTorch or of another package; None where there is none:
    for ops that only move data or work elementwise, and others that nobody registered one for."""
    from torch.utils.flop_counter import flop_registry

    known = _corrected().get(packet) or flop_registry.get(packet)
    return known or _missing().get(packet) or CUSTOM.get(str(packet))


@cache
def _corrected() -> dict[object, Callable[..., int]]:
    """In place of PyTorch's own: it counts all groups as one."""
    import torch

    return {torch.ops.aten.convolution_backward: convolution_backward}


@cache
def _missing() -> dict[object, Callable[..., int]]:
    """Formulas of ops that PyTorch has only on the CPU, or has no formula for."""
    import torch

    return {getattr(torch.ops.aten, name): count for name, count in PRODUCTS.items()}


def _grouped_products_backward(a: torch.Tensor, b: torch.Tensor, *_: Any, out_val: object) -> int:
    """FLOPs of the gradients of both factors: rows, and a matrix for each group of them."""
    return 2 * 2 * a.numel() * b.shape[2]


CUSTOM: dict[str, Callable[..., int]] = {
    "transformers.grouped_mm_fallback": grouped_product,
    "transformers.grouped_mm_fallback_backward": _grouped_products_backward,
}
"""Products of transformers' experts where `aten._grouped_mm` does not take their dtype."""
