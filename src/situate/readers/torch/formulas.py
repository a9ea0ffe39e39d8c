"""FLOPs of the operators of a captured step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from situate.readers.products import PRODUCTS, convolution_backward, grouped_product

if TYPE_CHECKING:
    import torch


def formula(packet: object) -> Callable[..., int] | None:
    """Of an operator of PyTorch, or of one that another package brings; None where there is none,
    for ops that only move data or work elementwise."""
    return _formulas().get(packet) or BROUGHT.get(str(packet))


@cache
def _formulas() -> dict[object, Callable[..., int]]:
    """PyTorch's own formulas, and those of ops that it has only on the CPU, leaves out or counts
    as if they had one group."""
    import torch
    from torch.utils.flop_counter import flop_registry

    aten = torch.ops.aten
    own = {getattr(aten, name): count for name, count in PRODUCTS.items()}
    return {**own, **flop_registry, aten.convolution_backward: convolution_backward}


def _grouped_products_backward(a: torch.Tensor, b: torch.Tensor, *_: Any, out_val: object) -> int:
    """Of both factors: rows, and a matrix for each group of them."""
    return 2 * 2 * a.numel() * b.shape[2]


BROUGHT: dict[str, Callable[..., int]] = {
    "transformers.grouped_mm_fallback": grouped_product,
    "transformers.grouped_mm_fallback_backward": _grouped_products_backward,
}
"""What experts of transformers multiply with where `aten._grouped_mm` does not take their dtype."""
