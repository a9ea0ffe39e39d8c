"""Strides of tensors, which a captured step counts on and other devices may give otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def is_dense(tensor: Tensor) -> bool:
    """True if the elements of a tensor lie side by side in some order, each once."""
    size = 1
    # From the innermost dimension out, each stride must be the number of elements within.
    for stride, length in sorted(_lengths(tensor)):
        if stride != size:
            return False
        size *= length
    return True


def laid_out(tensor: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The tensor if it has these strides, else a copy that does."""
    if tensor.stride() == strides:
        return tensor
    # Strides that differ only where a dimension has one element show the same: no copy is needed.
    made = tensor.new_empty_strided(tensor.shape, strides)
    return tensor if _lengths(tensor) == _lengths(made) else made.copy_(tensor)


def _lengths(tensor: Tensor) -> list[tuple[int, int]]:
    """Stride and length of every dimension that is longer than 1: others have any stride."""
    return [each for each in zip(tensor.stride(), tensor.shape, strict=True) if each[1] > 1]
