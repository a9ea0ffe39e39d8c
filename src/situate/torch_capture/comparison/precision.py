"""Steps in numbers of more bits than their own, whose rounding hides no difference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")


def in_precision(dtype: torch.dtype, run: Callable[[torch.dtype | None], Result]) -> Result:
    """The result of `run(dtype)`, which computes in numbers of this type; of `run(None)` where the
    step names types itself, so that it takes no others than its own."""
    try:
        with _default(dtype):
            return run(dtype)
    except Exception:
        # What fails for another reason fails again.
        return run(None)


@contextlib.contextmanager
def _default(dtype: torch.dtype) -> Iterator[None]:
    """A block in which PyTorch makes tensors of this type where a program names none."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def converted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A copy of a tensor in numbers of this type, or of two of them where it is complex; integers
    and booleans as they are."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    dtype = dtype.to_complex() if tensor.is_complex() else dtype
    return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)


def model_in(dtype: torch.dtype | None, model: torch.nn.Module) -> torch.nn.Module:
    """The same model, its real numbers now of a type of 32 or 64 bits; None: of their own."""
    import torch

    if dtype is None:
        return model
    return model.double() if dtype is torch.float64 else model.float()
