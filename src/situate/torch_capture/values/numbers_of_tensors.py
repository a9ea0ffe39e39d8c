"""Tensors that are made of lists of tensors, each a number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from situate.torch_capture.patches.patched import replaced


@contextmanager
def numbers_read() -> Iterator[None]:
    """Let `torch.tensor` ask tensors in a list for their numbers. PyTorch reads their memory, which
    fake ones do not have, and raises an error also where their values are known."""
    import torch

    make = torch.tensor

    def tensor(data: Any, **settings: Any) -> torch.Tensor:
        alike = settings.get("dtype") is not None
        return make(_read(data, alike) if isinstance(data, (list, tuple)) else data, **settings)

    with replaced(torch, "tensor", tensor):
        yield


def _read(data: Any, alike: bool) -> Any:
    """The same with numbers for tensors, where those make a tensor of the same type: Python has one
    type of integers and one of floating-point numbers."""
    import torch

    if isinstance(data, (list, tuple)):
        return [_read(each, alike) for each in data]
    fake = isinstance(data, torch.Tensor) and data.dim() == 0
    kinds = (torch.int64, torch.bool)
    return data.item() if fake and (alike or data.dtype in kinds) else data
