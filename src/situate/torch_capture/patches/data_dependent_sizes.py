"""Tensors whose sizes depend on values that the program made from its own numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.constant_values import FILLING, MAX_KEPT_NUMBERS

if TYPE_CHECKING:
    import torch
    from torch import fx

NAME = "sized_by_values_{}"
COMPOSITE = frozenset(
    f"aten.{name}"
    for name in ("argwhere", "nonzero_numpy", "repeat_interleave.self_Tensor", "where")
)
"""Operators that call others of data-dependent size."""

UNKNOWN = object()


def fold_sized(
    module: fx.GraphModule,
    constants: Mapping[str, Any],
    find: Callable[[fx.Node], torch.Tensor | None],
) -> dict[str, torch.Tensor]:
    """Replace calls such as `nonzero` by their results if all their inputs are known. Traced again,
    these results would have no known size.

    Args:
        module: an exported step, changed in place.
        constants: by name, the tensors that the step reads and that are no state of the model.
        find: the value of a node that is the same in every step, such as an input that may have no
            other; None for other nodes.

    Returns:
        The results that replace calls, by name.
    """
    folded: dict[str, torch.Tensor] = {}
    # Most steps have no such call, and folding constants for nothing would take time.
    if any(_is_sized(node) for node in module.graph.nodes):
        values = _ConstantValues(constants, find)
        for node in [*module.graph.nodes]:
            values.narrow(node)
            value = values.compute(node)
            if _is_made(node) and value is not UNKNOWN:
                name = NAME.format(len(folded))
                folded[name] = value.clone()
                values.replace(_replace(module, node, name, folded[name]), value)
        _erase_calls(module)
    return folded


def _is_sized(node: fx.Node) -> bool:
    """True if values decide the size of a node's output."""
    import torch

    target = node.target
    return isinstance(target, torch._ops.OpOverload) and (
        torch.Tag.dynamic_output_shape in target.tags
        or str(target).removesuffix(".default") in COMPOSITE
    )


def _is_made(node: fx.Node) -> bool:
    """True for a tensor of such a size. Of a call with several outputs, each used output is one."""
    if node.target is operator.getitem:
        return _is_sized(node.all_input_nodes[0])
    return _is_sized(node) and not any(user.target is operator.getitem for user in node.users)


def _replace(module: fx.GraphModule, node: fx.Node, name: str, value: torch.Tensor) -> fx.Node:
    from torch.ops import aten

    module.register_buffer(name, value)
    with module.graph.inserting_before(node):
        buffer = module.graph.get_attr(name)
        # A copy, as the call made a new tensor that later ops may write to.
        copy = module.graph.call_function(aten.lift_fresh_copy.default, (buffer,))
    node.replace_all_uses_with(copy, propagate_meta=True)
    return copy


def _erase_calls(module: fx.GraphModule) -> None:
    # Backwards: a call with several outputs loses its last user when its items are erased.
    for node in reversed(module.graph.nodes):
        if not node.users and (_is_made(node) or _is_sized(node)):
            module.graph.erase_node(node)


class _ConstantValues:
    """Values of nodes that depend on constants alone, node by node in the order of the graph."""

    def __init__(
        self, constants: Mapping[str, Any], find: Callable[[fx.Node], torch.Tensor | None]
    ) -> None:
        self._constants, self._find = constants, find
        self._values: dict[fx.Node, Any] = {}
        self._overwritten: set[int] = set()  # storages that something unknown was written to

    def replace(self, node: fx.Node, value: torch.Tensor) -> None:
        """Record the value of a node that replaces a call."""
        self._values[node] = value

    def compute(self, node: fx.Node) -> Any:
        """The value of a node; `UNKNOWN` if it is not known."""
        value = self._values[node] = self._computed(node)
        return value

    def narrow(self, node: fx.Node) -> None:
        """Replace a known start of a part of a tensor by its number."""
        from torch import fx
        from torch.ops import aten

        if node.target is aten.narrow.Tensor:
            tensor, axis, begin, length = node.args
            if isinstance(begin, fx.Node) and self._is_known(begin):
                node.target = aten.narrow.default
                node.args = (tensor, axis, int(self._values[begin]), length)

    def _computed(self, node: fx.Node) -> Any:
        from torch.fx.node import map_arg

        if node.op == "get_attr":
            return _copied(self._constants.get(str(node.target)))
        filled = _is_filled(node)
        if (value := self._find(node)) is not None:
            return value.clone()
        is_known = filled or all(map(self._is_known, node.all_input_nodes))
        if not is_known or not _is_computed(node):
            self._overwrite(node)
            return UNKNOWN
        # A filling operator needs the shape of its input alone, so an uninitialised tensor serves.
        values = _like if filled else self._values.__getitem__
        args, kwargs = map_arg((node.args, node.kwargs), values)
        return node.target(*args, **kwargs)  # type: ignore[operator]

    def _overwrite(self, node: fx.Node) -> None:
        """Forget the tensors that a node writes, and all that share their memory."""
        schema = getattr(node.target, "_schema", None)
        if schema and schema.is_mutable:
            inputs = (self._values.get(source) for source in node.all_input_nodes)
            self._overwritten |= {key for value in inputs for key in _storages(value)}

    def _is_known(self, node: fx.Node) -> bool:
        value = self._values[node]
        return value is not UNKNOWN and not self._overwritten.intersection(_storages(value))


def _copied(value: Any) -> Any:
    """A copy that may be overwritten. Tensors of a model without memory have no values."""
    import torch

    return value.clone() if type(value) is torch.Tensor else UNKNOWN


def _storages(value: Any) -> Iterator[int]:
    import torch
    from torch.utils._pytree import tree_leaves

    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            # The address of PyTorch's own object of the memory, which all views of it share.
            yield leaf.untyped_storage()._cdata


def _is_filled(node: fx.Node) -> bool:
    """True if the node fills a tensor of the kind or size of its inputs."""
    return getattr(node.target, "_opname", None) in FILLING


def _like(node: fx.Node) -> torch.Tensor:
    """A tensor of the same kind and size with arbitrary values."""
    import torch

    value = node.meta["val"]
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def _is_computed(node: fx.Node) -> bool:
    """True if a call always gives the same result, of a size that is kept."""
    import torch

    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or "empty" in node.target._opname:
        return False
    sizes = getattr(node.meta.get("val"), "shape", ())
    chance = torch.Tag.nondeterministic_seeded in node.target.tags
    return not chance and torch.Size(sizes).numel() <= MAX_KEPT_NUMBERS
