"""Signatures: one text for all ops that cost the same on one device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from situate.torch_capture import cost

if TYPE_CHECKING:
    import torch
    from torch import fx

SHORT = {"bfloat": "bf", "complex": "c", "float": "f", "uint": "u", "int": "i"}
"""Kinds of element in a signature; their width follows."""


def of_node(node: fx.Node) -> str:
    """The computation of a captured op, without tensor values and devices.

    An example is `aten.addmm(f32[10], f32[8,64], f32[64,10]s[1,64])`. Strides appear if a tensor is
    not laid out row by row.
    """
    name = str(node.target).removesuffix(".default")
    return call(name, cost.values(node.args), cost.values(node.kwargs))


def call(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> str:
    """The signature of an op on these arguments."""
    options = sorted((kwargs or {}).items())
    texts = [_text(value) for value in args]
    texts += [f"{key}={_text(value)}" for key, value in options if not _is_device(value)]
    return f"{name}({', '.join(texts)})"


def _text(value: object) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_text, value))}]"
    if _is_device(value):
        return "device"
    return str(value)


def _is_device(value: object) -> bool:
    import torch

    return isinstance(value, torch.device)


def _tensor(tensor: torch.Tensor) -> str:
    import torch

    text = f"{_dtype(tensor.dtype)}[{','.join(map(str, tensor.shape))}]"
    if tensor.layout is not torch.strided or tensor.is_contiguous():
        return text
    # The stride of a dimension of size 1 has no effect, so it is written as 0.
    moves = zip(tensor.shape, tensor.stride(), strict=True)
    return f"{text}s[{','.join(str(stride if size > 1 else 0) for size, stride in moves)}]"


def _dtype(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    for long, short in SHORT.items():
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name
