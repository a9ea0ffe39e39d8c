"""Steps in numbers of 64 bits, whose rounding hides no difference and makes none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")


def in_most_bits(run: Callable[[bool], Result]) -> Result:
    """The result of `run(True)`, which computes in 64 bits; of `run(False)` where the step names
    types of numbers, so that it takes no others than its own."""
    try:
        with _doubles_by_default():
            return run(True)
    except Exception:
        # What fails for another reason fails again.
        return run(False)


@contextlib.contextmanager
def _doubles_by_default() -> Iterator[None]:
    """A block in which PyTorch makes tensors of 64 bits where a program names no type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def doubled(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor in 64 bits, or 128 of a complex one; others as they are."""
    import torch

    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    dtype = torch.complex128 if tensor.is_complex() else torch.float64
    return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)
