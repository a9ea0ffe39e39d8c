"""Gradients that a captured step clips together, as `torch.nn.utils.clip_grad_norm_` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from situate.data.update_rule import CLIP
from situate.torch_capture.names import path
from situate.torch_capture.nodes import add_call, module_of
from situate.torch_capture.tracing import Trace
from situate.torch_capture.updates.gradient_nodes import gradient_nodes, replace_gradients

if TYPE_CHECKING:
    import torch
    from torch import fx

TINY = 1e-6
"""PyTorch adds this to the norm, so that it never divides by zero."""


def clip_gradients(trace: Trace, max_norm: float) -> None:
    """Let a trace return its gradients g as g · min(1, max_norm / (‖all g‖ + `TINY`)).

    The norm is the norm of the gradients' norms in PyTorch's order, and each gradient has its
    parameter's layout. The result therefore equals PyTorch's to the last bit.
    """
    graph = trace.graph
    with graph.inserting_before(graph.output_node()):
        gradients = _gradients(trace)
        if not gradients:
            return
        factor = _factor(trace, gradients, max_norm)
        clipped = {
            name: _clipped(trace, module_of(name), gradient, factor)
            for name, gradient in gradients.items()
        }
    replace_gradients(trace, clipped)


def _gradients(trace: Trace) -> dict[str, fx.Node]:
    """By parameter, in the model's order: its gradient, in the parameter's layout."""
    placeholders = {path(node.meta.get("desc")): node for node in trace.graph.nodes}
    return {
        name: _laid_out(trace, name, gradient, placeholders[name])
        for name, gradient in gradient_nodes(trace).items()
    }


def _laid_out(trace: Trace, name: str, gradient: fx.Node, parameter: fx.Node) -> fx.Node:
    """The gradient in the layout that PyTorch gives `.grad`."""
    import torch

    like: torch.Tensor = parameter.meta["val"]
    if gradient.meta["val"].stride() == like.stride():
        return gradient
    # Autograd stores the gradient of a dense parameter in the parameter's layout.
    formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
    dimensions = (like.dim(), 4, 5)
    for layout, dim in zip(formats, dimensions, strict=True):
        if like.dim() == dim and like.is_contiguous(memory_format=layout):
            return add_call(
                trace.graph, module_of(name), "clone.default", gradient, memory_format=layout
            )
    return gradient


def _clipped(trace: Trace, module: str, gradient: fx.Node, factor: fx.Node) -> fx.Node:
    """The gradient times the factor, in the gradient's dtype."""
    product = add_call(trace.graph, module, "mul.Tensor", gradient, factor)
    # A gradient without dimensions is promoted to the factor's dtype, as all scalars are.
    dtype = gradient.meta["val"].dtype
    if product.meta["val"].dtype == dtype:
        return product
    return add_call(trace.graph, module, "_to_copy.default", product, dtype=dtype)


def _factor(trace: Trace, gradients: dict[str, fx.Node], max_norm: float) -> fx.Node:
    """The number that all gradients are multiplied by."""
    norms = [
        add_call(trace.graph, module_of(name), "linalg_vector_norm.default", gradients[name])
        for name in _by_type(gradients)
    ]
    where = f"{CLIP}{max_norm!r}"
    stacked = add_call(trace.graph, where, "stack.default", norms)
    norm = add_call(trace.graph, where, "linalg_vector_norm.default", stacked)
    longer = add_call(trace.graph, where, "add.Tensor", norm, TINY)
    # PyTorch computes `max_norm / norm` as `norm.reciprocal() * max_norm`, which rounds twice.
    inverse = add_call(trace.graph, where, "reciprocal.default", longer)
    factor = add_call(trace.graph, where, "mul.Tensor", inverse, max_norm)
    return add_call(trace.graph, where, "clamp.default", factor, None, 1.0)


def _by_type(gradients: dict[str, fx.Node]) -> list[str]:
    """The parameters in the order in which PyTorch takes the norms of their gradients: dtype by
    dtype."""
    import torch
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype

    # PyTorch's grouping is a C++ function of real tensors. Empty ones of the same dtypes suffice.
    kinds: list[torch.Tensor | None] = [
        torch.empty(0, dtype=node.meta["val"].dtype) for node in gradients.values()
    ]
    groups = _group_tensors_by_device_and_dtype([kinds], with_indices=True)
    names = list(gradients)
    return [names[index] for _, indices in groups.values() for index in indices]
