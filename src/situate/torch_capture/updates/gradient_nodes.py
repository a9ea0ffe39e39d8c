"""The gradients that a trace returns, by parameter, and their replacement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from situate.torch_capture.flow import described_outputs
from situate.torch_capture.names import path
from situate.torch_capture.nodes import add_call, module_of
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx


def gradient_nodes(trace: Trace) -> dict[str, fx.Node]:
    """By parameter, in the model's order: the sum of its gradients over its names.

    Sums are added to the graph at its point of insertion.
    """
    gradients: dict[str, fx.Node] = {}
    for node, descriptor in described_outputs(trace.graph):
        if name := _parameter(trace, descriptor):
            before = gradients.get(name)
            module = module_of(name)
            gradients[name] = (
                add_call(trace.graph, module, "add.Tensor", before, node) if before else node
            )
    order = dict.fromkeys(trace.canonical.values())
    return {name: gradients[name] for name in order if name in gradients}


def replace_gradients(trace: Trace, gradients: Mapping[str, fx.Node]) -> None:
    """Let a trace return these gradients, one for each parameter."""
    output, left = trace.graph.output_node(), dict(gradients)
    returned: list[tuple[Any, Any]] = []
    for node, descriptor in described_outputs(trace.graph):
        name = _parameter(trace, descriptor)
        if name is None:
            returned.append((node, descriptor))
        # A tied parameter has an output for each name. The first returns the sum; the others go.
        elif name in left:
            returned.append((left.pop(name), descriptor))
    output.args = (tuple(node for node, _ in returned),)
    output.meta["desc"] = [descriptor for _, descriptor in returned]


def _parameter(trace: Trace, descriptor: object) -> str | None:
    """The parameter whose gradient an output is; None for other outputs."""
    if type(descriptor).__name__ != "GradAOTOutput":
        return None
    name = path(descriptor.grad_of)  # type: ignore[attr-defined]
    return trace.canonical[name] if name in trace.trainable else None
