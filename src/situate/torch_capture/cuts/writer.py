"""Nodes that are added to a step that is cut."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture import names
from situate.torch_capture.flow import APART
from situate.torch_capture.patches.kernel_results import layouts_as_computed
from situate.torch_capture.value_keys import ValueKeys

if TYPE_CHECKING:
    import torch
    from torch import fx

NOT_COPIED = frozenset(
    {"val", "tensor_meta", "desc", names.NAME, names.PART, names.AGAIN, names.DRAW, APART}
)
"""Keys in the `meta` of a node that do not hold for other nodes in its place."""


class FakeResults:
    """Results of calls on fake tensors. Equal parts have equal results, in all cuts of a step,
    so each is derived once."""

    def __init__(self) -> None:
        self._keys = ValueKeys()
        self._values: dict[Any, Any] = {}
        self._views: dict[Any, bool] = {}

    def of(self, node: fx.Node) -> Any:
        """The result of a call, with the strides that its kernel gives it."""
        import torch

        key = self._keys.of_call(node)
        if key not in self._values:
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda x: x.meta["val"])
            target: Any = node.target
            with torch.no_grad(), layouts_as_computed():
                self._values[key] = target(*args, **kwargs)
        return self._values[key]

    def has_view(self, args: tuple[Any, ...]) -> bool:
        """True if a tensor has a view of these sizes without a copy."""
        x, sizes = args
        key = self._keys.of(args)
        if key not in self._views:
            self._views[key] = _has_view(x.meta["val"], sizes)
        return self._views[key]


class Writer:
    """Adds nodes to a graph, each in the module, slice and pass of another node.

    Args:
        graph: that grows.
        results: of calls so far.
    """

    def __init__(self, graph: fx.Graph, results: FakeResults) -> None:
        self.graph, self._results = graph, results
        # By node that others stand in the place of, its `meta` for them.
        self._places: dict[fx.Node, dict[str, Any]] = {}
        self._names: dict[Any, str] = {}

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
        node = self._new(target, args, dict(kwargs or {}))
        node.meta.update(self._place(like, part))
        node.meta["val"] = self._results.of(node)
        return node

    def item(self, node: fx.Node, k: int) -> fx.Node:
        """An output of a call."""
        item = self._new(operator.getitem, (node, k), {})
        item.meta.update(self._place(node, node.meta.get(names.PART)))
        item.meta["val"] = node.meta["val"][k]
        return item

    def _new(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> fx.Node:
        if target not in self._names:
            self._names[target] = str(getattr(target, "__name__", target)).replace(".", "_")
        # Arguments that come later are not searched for symbolic numbers, of which there are none.
        node = self.graph.create_node("call_function", target, name=self._names[target])
        node.args = args
        if kwargs:
            node.kwargs = kwargs
        return node

    def _place(self, like: fx.Node, part: int | None) -> dict[str, Any]:
        """The `meta` of a node in the place of another."""
        meta = self._places.get(like)
        if meta is None:
            meta = {key: value for key, value in like.meta.items() if key not in NOT_COPIED}
            self._places[like] = meta
        return meta if part is None else meta | {names.PART: part}

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
        if self._results.has_view(args):
            return args
        options = {"memory_format": torch.contiguous_format}
        copy = self.call(like, aten.clone.default, (x,), part, options)
        copy.meta[APART] = True
        return copy, sizes


def _has_view(value: torch.Tensor, sizes: Sequence[int]) -> bool:
    try:
        value.view(tuple(sizes))
    except (RuntimeError, ValueError):
        return False
    return True
