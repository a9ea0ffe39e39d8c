"""Nodes that are added to a captured step: what PyTorch does to gradients after the backward
pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import fx
    from torch._ops import OpOverload


def add_call(graph: fx.Graph, module: str, name: str, *args: Any, **kwargs: Any) -> fx.Node:
    """A call of an op of ATen, such as `add.Tensor`, in the backward pass, said to come from a
    module of the step."""
    import torch

    packet, _, overload = name.partition(".")
    op: OpOverload = getattr(getattr(torch.ops.aten, packet), overload)
    return add_operator(graph, module, op, *args, **kwargs)


def add_operator(
    graph: fx.Graph, module: str, op: OpOverload, *args: Any, **kwargs: Any
) -> fx.Node:
    """The same of any operator."""
    import torch

    node = graph.call_function(op, args, kwargs)
    values, named = torch.fx.node.map_arg((args, kwargs), lambda given: given.meta["val"])
    with torch.no_grad():
        node.meta["val"] = op(*values, **named)
    node.meta["nn_module_stack"] = {"": (module, "")}
    node.meta["partitioner_tag"] = "is_backward"
    return node


def module_of(parameter: str) -> str:
    """The module of the step that a parameter is in."""
    return f"model.{parameter}".rpartition(".")[0]
