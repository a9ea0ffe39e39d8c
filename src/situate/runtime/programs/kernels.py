"""The kernels that a step calls by qualified names, such as `aten::add.Tensor`, and the strides of
their results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from situate.runtime.programs.replacements import CPU_ONLY_REPLACEMENTS, dropout, dropout_backward

if TYPE_CHECKING:
    import torch
    from torch import Tensor, fx


VIEW_KERNELS = frozenset({"aten::view", "aten::_unsafe_view"})
"""Kernels that refuse strides which differ from the captured ones."""

EAGER_ROUNDING: dict[str, Callable[..., Any]] = {
    "aten::native_dropout": dropout,
    "aten::native_dropout_backward": dropout_backward,
}
"""Functions by operator name that round on a CPU like eager PyTorch, unlike the traced operator."""


def kernel_name(node: fx.Node) -> str:
    """The qualified name of a node's operator."""
    operator: Any = node.target
    return str(operator.name())


def kernel(name: str, device: torch.device) -> Callable[..., Any]:
    """The kernel of this name: PyTorch's operator, or a replacement if that runs on CPUs only or
    rounds unlike eager PyTorch."""
    import torch

    if device.type != "cpu" and name in CPU_ONLY_REPLACEMENTS:
        return CPU_ONLY_REPLACEMENTS[name]
    if device.type == "cpu" and name in EAGER_ROUNDING:
        return EAGER_ROUNDING[name]
    if name in VIEW_KERNELS:
        return view()
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    operator = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    # The bound C++ function, without the Python layer of `OpOverload` around it.
    operator_call: Callable[..., Any] = operator._op
    return operator_call


@cache
def view() -> Callable[[torch.Tensor, list[int]], torch.Tensor]:
    """A function that reshapes a tensor.

    Some kernels' results have other strides than PyTorch told capture. Then it copies, as eager
    autograd does.
    """
    import torch

    # The function of C++, without the dispatch in Python of its overload.
    operator = torch.ops.aten.view.default._op

    def viewed(tensor: torch.Tensor, shape: list[int]) -> torch.Tensor:
        try:
            return operator(tensor, shape)  # type: ignore[no-any-return]
        except RuntimeError:
            return tensor.reshape(shape)

    return viewed


def is_dense(tensor: Tensor) -> bool:
    """True if the elements of a tensor fill a range of memory, each once."""
    size = 1
    # From the innermost dimension out, each stride must be the number of elements within.
    for stride, length in sorted(_lengths(tensor)):
        if stride != size:
            return False
        size *= length
    return True


def laid_out(tensor: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The tensor if it has these strides, else a copy with them."""
    if tensor.stride() == strides:
        return tensor
    # Strides that differ only where a dimension has one element show the same: no copy is needed.
    copy_target = tensor.new_empty_strided(tensor.shape, strides)
    return tensor if _lengths(tensor) == _lengths(copy_target) else copy_target.copy_(tensor)


def _lengths(tensor: Tensor) -> list[tuple[int, int]]:
    """Stride and length of every dimension longer than 1; others may have any stride."""
    return [
        dimension
        for dimension in zip(tensor.stride(), tensor.shape, strict=True)
        if dimension[1] > 1
    ]
