"""Kernels that write their result into a channel's memory or over one of their arguments.

Eager autograd also accumulates gradients in place: this saves a pass over memory outside the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from situate.torch_capture.flow import layout

if TYPE_CHECKING:
    import torch
    from torch import fx
    from torch._ops import OpOverload


class OutKernel(NamedTuple):
    """The qualified name of a kernel, such as `aten::add.out`, and its output argument."""

    name: str
    argument: str


def out_kernel(node: fx.Node) -> OutKernel | None:
    """The kernel that computes a node's result into a given tensor.

    None if there is no such kernel, if it would copy, or if it needs more memory than its result:
    reduced losses first fill their output with all unreduced values.
    """
    import torch

    if node.op != "call_function" or not isinstance(node.meta["val"], torch.Tensor):
        return None
    return _out_kernel(node.target)


@cache
def _out_kernel(operator: OpOverload) -> OutKernel | None:
    import torch

    schema_arguments = operator._schema.arguments
    draws = torch.Tag.nondeterministic_seeded in operator.tags
    if draws or any(argument.name == "reduction" for argument in schema_arguments):
        return None
    packet = operator.overloadpacket
    # The form with `out=`: the same arguments, and one more that is written and given by name only.
    for overload in packet.overloads():
        other: OpOverload = getattr(packet, overload)
        arguments = other._schema.arguments
        outputs = [a for a in arguments if a.alias_info is not None and a.alias_info.is_write]
        if len(outputs) == 1 and outputs[0].kwarg_only and _runs_on_cpus(other):
            rest = [a for a in arguments if a.name != outputs[0].name]
            if _kinds(rest) == _kinds(schema_arguments):
                return OutKernel(str(other.name()), outputs[0].name)  # type: ignore[no-untyped-call]
    return None


def _kinds(arguments: list[torch.Argument]) -> list[tuple[Any, ...]]:
    return [(a.name, str(a.type), a.kwarg_only) for a in arguments]


def _runs_on_cpus(operator: OpOverload) -> bool:
    """True for an operator with a CPU kernel of its own; PyTorch's derived ones compute elsewhere
    and copy."""
    import torch

    name = operator.name()  # type: ignore[no-untyped-call]
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU"))


def in_place_calls(node: fx.Node) -> Iterator[tuple[fx.Node, tuple[Any, ...]]]:
    """The arguments, in order, of every call that writes a node's result over the first of them."""
    from torch import fx

    # An argument by name, such as `alpha`, is not passed on to the call in place.
    if not _has_in_place_form(node) or node.kwargs:
        return
    first, *others = node.args
    if isinstance(first, fx.Node) and _has_layout_of(first, node):
        yield first, tuple(others)
    if _commutes(node) and isinstance(others[0], fx.Node) and _has_layout_of(others[0], node):
        yield others[0], (first,)


def _has_in_place_form(node: fx.Node) -> bool:
    """True for an elementwise op with an in-place form of the same arguments."""
    import torch

    target: Any = node.target
    if torch.Tag.pointwise not in target.tags or target.namespace != "aten":
        return False
    packet = getattr(torch.ops.aten, f"{target._opname}_", None)
    twin = getattr(packet, target._overloadname, None)
    return twin is not None and len(twin._schema.arguments) == len(target._schema.arguments)


def _commutes(node: fx.Node) -> bool:
    """True for an op that rounds equally in either order, unlike a product of complex numbers."""
    import torch

    aten = torch.ops.aten
    if node.target is aten.mul.Tensor:
        return not node.meta["val"].is_complex()
    return node.target is aten.add.Tensor and len(node.args) == 2


def _has_layout_of(source: fx.Node, node: fx.Node) -> bool:
    """True if a value has the layout and dtype of the result."""
    old, new = source.meta["val"], node.meta["val"]
    return bool(layout(old) == layout(new) and old.dtype == new.dtype)
