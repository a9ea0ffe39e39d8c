"""Nodes that are added to a step that is cut."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture import names
from situate.torch_capture.flow import APART
from situate.torch_capture.patches.kernel_results import layouts_as_computed

if TYPE_CHECKING:
    import torch
    from torch import fx

NOT_COPIED = frozenset(
    {"val", "tensor_meta", "desc", names.NAME, names.PART, names.AGAIN, names.DRAW, APART}
)
"""Keys in the `meta` of a node that do not hold for other nodes in its place."""


class Writer:
    """Adds nodes to a graph, each in the module, slice and pass of another node.

    Args:
        graph: that grows.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        # Parts of one size have equal results, so shapes are derived once.
        self._values: dict[Any, Any] = {}
        # By key of the arguments of a view, True if there is one without a copy.
        self._has_view: dict[Any, bool] = {}

    def call(
        self,
        like: fx.Node,
        target: Any,
        args: Sequence[Any],
        part: int | None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> fx.Node:
        """A call of an operator.

        Args:
            like: the node whose module, slice and pass the call has.
            part: the number of the part that it computes; None for a value that is there once.
        """
        args = self._viewable(like, target, tuple(args), part)
        node = self.graph.call_function(target, args, dict(kwargs or {}))
        node.meta |= _place(like, part)
        node.meta["val"] = self._value(node)
        return node

    def item(self, node: fx.Node, k: int) -> fx.Node:
        """An output of a call."""
        item = self.graph.call_function(operator.getitem, (node, k))
        item.meta |= _place(node, node.meta.get(names.PART))
        item.meta["val"] = node.meta["val"][k]
        return item

    def _viewable(
        self, like: fx.Node, target: Any, args: tuple[Any, ...], part: int | None
    ) -> tuple[Any, ...]:
        """The arguments of a view, with a copy of a tensor that has no such view."""
        import torch

        aten = torch.ops.aten
        if target not in (aten.view.default, aten._unsafe_view.default):
            return args
        x, sizes = args
        # A part, or a gathered whole, can lie in memory in another way than the value it replaces.
        key = _key(args)
        if key not in self._has_view:
            self._has_view[key] = _has_view(x.meta["val"], sizes)
        if self._has_view[key]:
            return args
        options = {"memory_format": torch.contiguous_format}
        copy = self.call(like, aten.clone.default, (x,), part, options)
        copy.meta[APART] = True
        return copy, sizes

    def _value(self, node: fx.Node) -> Any:
        """The fake result of a call, with the strides that its kernel gives it."""
        import torch

        key = (node.target, _key(node.args), _key(node.kwargs))
        if key not in self._values:
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda x: x.meta["val"])
            target: Any = node.target
            with torch.no_grad(), layouts_as_computed():
                self._values[key] = target(*args, **kwargs)
        return self._values[key]


def _place(like: fx.Node, part: int | None) -> dict[str, Any]:
    """The `meta` of a node in the place of another."""
    meta = {key: value for key, value in like.meta.items() if key not in NOT_COPIED}
    return meta if part is None else meta | {names.PART: part}


def _has_view(value: torch.Tensor, sizes: Sequence[int]) -> bool:
    try:
        value.view(tuple(sizes))
    except (RuntimeError, ValueError):
        return False
    return True


def _key(arguments: Any) -> Any:
    """A key that is equal for arguments with equal results on fake tensors."""
    if hasattr(arguments, "meta"):
        value = arguments.meta["val"]
        return _tensor_key(value) if hasattr(value, "stride") else tuple(map(_tensor_key, value))
    if isinstance(arguments, (list, tuple)):
        return tuple(map(_key, arguments))
    if isinstance(arguments, Mapping):
        return tuple((name, _key(value)) for name, value in arguments.items())
    # True equals 1, and 1 equals 1.0, as keys of a dict.
    return type(arguments), arguments


def _tensor_key(value: Any) -> Any:
    if not hasattr(value, "stride"):
        return value
    stored = value.untyped_storage().nbytes()
    return tuple(value.shape), value.stride(), value.dtype, value.device, stored, value.is_conj()
