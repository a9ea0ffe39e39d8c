"""Nodes of a captured step: operator, arguments and source line, and nodes that are added after the
backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture import names
from situate.torch_capture.refusals.lines import user_line_in

if TYPE_CHECKING:
    from torch import fx
    from torch._ops import OpOverload


def add_call(graph: fx.Graph, module: str, name: str, *args: Any, **kwargs: Any) -> fx.Node:
    """A call of an ATen op such as `add.Tensor`, added to the backward pass and attributed to a
    module of the step."""
    import torch

    packet, _, overload = name.partition(".")
    op: OpOverload = getattr(getattr(torch.ops.aten, packet), overload)
    return add_operator(graph, module, op, *args, **kwargs)


def add_operator(
    graph: fx.Graph, module: str, op: OpOverload, *args: Any, **kwargs: Any
) -> fx.Node:
    """A call of any operator, added like `add_call`."""
    import torch

    node = graph.call_function(op, args, kwargs)
    values, options = torch.fx.node.map_arg((args, kwargs), lambda source: source.meta["val"])
    # On fake tensors an operator only derives shape, strides and dtype.
    with torch.no_grad():
        node.meta["val"] = op(*values, **options)
    # The keys by which nodes of AOTAutograd name their module and the backward pass.
    node.meta["nn_module_stack"] = {"": (module, "")}
    node.meta["partitioner_tag"] = "is_backward"
    return node


def module_of(parameter: str) -> str:
    """The module of the step that holds a parameter."""
    return f"model.{parameter}".rpartition(".")[0]


def operator_name(node: fx.Node) -> str:
    """The name of an operator, such as `mean`."""
    return str(getattr(node.target, "overloadpacket", node.target)).rpartition(".")[2]


def bound_arguments(node: fx.Node) -> dict[str, Any]:
    """The arguments of a call by name, with the defaults of those that the call leaves out."""
    target: Any = node.target
    parameters = target._schema.arguments
    defaults = {a.name: a.default_value for a in parameters if a.has_default_value()}
    positional = zip((a.name for a in parameters), node.args, strict=False)
    return defaults | dict(positional) | dict(node.kwargs)


def place(node: fx.Node) -> str:
    """The module of an op and its source line, such as `layers.0, mine.py:12`.

    An op of a loss module of PyTorch has the module's class and the line that made it.
    """
    module = names.module(node) or "the model"
    line = user_line_in(node.meta.get("stack_trace") or "").removesuffix(": ")
    line = line or node.meta.get(names.CRITERION, "")
    return f"{module}, {line}" if line else module


def places(nodes: Sequence[fx.Node]) -> str:
    """The number of ops and the place of the first, such as `2 ops, the first of layers.0,
    mine.py:12`."""
    many = f"{len(nodes)} ops, the first" if len(nodes) > 1 else "an op"
    return f"{many} of {place(nodes[0])}"
