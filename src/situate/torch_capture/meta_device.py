"""Models that were built on the device `meta`: shapes without values, like fake tensors, but of no
device that ops run on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

Replace = Callable[[Any], Any]


def to_cpu(model: torch.nn.Module, mode: FakeTensorMode) -> Replace:
    """Put what the model holds on `meta` on the CPU, as a fake tensor. What is one stays one.

    Returns:
        What does the same with any tensor, and leaves all else as it is.
    """
    replace = _replacing(mode)
    for module in model.modules():
        for store in (module._parameters, module._buffers, vars(module)):
            store.update({name: replace(value) for name, value in store.items()})
    return replace


def _replacing(mode: FakeTensorMode) -> Replace:
    import torch
    from torch.nn.parameter import is_lazy

    made: dict[int, tuple[Any, torch.Tensor]] = {}  # what is replaced must live: its id is a key

    def replace(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.device.type != "meta" or is_lazy(value):
            return value
        return made.setdefault(id(value), (value, _on_cpu(value, mode)))[1]

    return replace


def _on_cpu(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    import torch

    with mode:
        shape, strides = tensor.shape, tensor.stride()
        made = torch.empty_strided(shape, strides, dtype=tensor.dtype, device="cpu")
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(made, tensor.requires_grad)
        return made.requires_grad_(tensor.requires_grad)
