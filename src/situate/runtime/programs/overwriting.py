"""Elementwise ops that can write their result over an argument, as eager autograd does where it
accumulates gradients: it saves a pass over memory that was not in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from situate.torch_capture.flow import layout

if TYPE_CHECKING:
    from torch import fx


def in_place(node: fx.Node) -> Iterator[tuple[fx.Node, tuple[Any, ...]]]:
    """The arguments, in order, of every call that writes a node's result over the first of them."""
    from torch import fx

    # An argument by name, such as `alpha`, is not passed on to the call in place.
    if not _has_twin(node) or node.kwargs:
        return
    first, *others = node.args
    if isinstance(first, fx.Node) and _same(first, node):
        yield first, tuple(others)
    if _commutes(node) and isinstance(others[0], fx.Node) and _same(others[0], node):
        yield others[0], (first,)


def _has_twin(node: fx.Node) -> bool:
    """True for an elementwise op of which there is one with the same arguments in place."""
    import torch

    target: Any = node.target
    if torch.Tag.pointwise not in target.tags or target.namespace != "aten":
        return False
    packet = getattr(torch.ops.aten, f"{target._opname}_", None)
    twin = getattr(packet, target._overloadname, None)
    return twin is not None and len(twin._schema.arguments) == len(target._schema.arguments)


def _commutes(node: fx.Node) -> bool:
    """True for an op that rounds alike in either order; a product of complex numbers does not."""
    import torch

    aten = torch.ops.aten
    if node.target is aten.mul.Tensor:
        return not node.meta["val"].is_complex()
    return node.target is aten.add.Tensor and len(node.args) == 2


def _same(source: fx.Node, node: fx.Node) -> bool:
    """True if a value is laid out just as the result."""
    old, new = source.meta["val"], node.meta["val"]
    return bool(layout(old) == layout(new) and old.dtype == new.dtype)
