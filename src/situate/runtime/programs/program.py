"""A captured step as a program: what every op of its graph executes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.data.update_rule import update_rule
from situate.runtime.programs.custom_ops import check_functional
from situate.torch_capture import check_installed, checked, step_of
from situate.torch_capture.build import from_real
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.graph import assemble, drafts, to_step
from situate.torch_capture.names import path
from situate.torch_capture.ops import Step
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.refusals.errors import explained, quiet
from situate.torch_capture.slices.traces import Traces
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    import torch
    from torch import fx


@dataclass(frozen=True)
class Program:
    """A step that can be executed op by op.

    Attributes:
        graph: what is planned.
        step: the trace, and what flows in it.
        nodes: (ops,) what an op of the graph computes, holds or updates.
        results: the nodes whose values the step returns: the loss, or what the model returns; then
            those of what it writes over its inputs.
        overwritten: numbers of those inputs, in that order.
        gradients: by parameter or copy of one, the nodes of its gradients, one for each of the
            names it goes by.
        mutations: by buffer, the node of its new value.
        training: it has gradients and updates.
        optimizer: the kind of the update of its parameters.
        separate: from inputs, structured as the captured ones, to the tensors among them, or to
            their slices.
        restore: from the results to what the loss or the model returns.
        named: the devices that model and step name.
    """

    graph: Graph
    step: Step
    nodes: tuple[fx.Node, ...]
    results: tuple[fx.Node, ...]
    overwritten: tuple[int, ...]
    gradients: dict[str, tuple[fx.Node, ...]]
    mutations: dict[str, fx.Node]
    training: bool
    optimizer: str
    separate: Callable[[object], tuple[torch.Tensor, ...]]
    restore: Callable[[list[torch.Tensor]], Any]
    named: NamedDevices

    @property
    def inputs(self) -> list[fx.Node]:
        """The nodes of the tensors that the step is given, in order."""
        kinds = {node: type(node.meta.get("desc")).__name__ for node in self.step.number}
        return [node for node, kind in kinds.items() if kind == "PlainAOTInput"]


def capture_program(
    model: torch.nn.Module,
    inputs: object,
    loss: Callable[..., Any] | None,
    *,
    training: bool = True,
    optimizer: str = "sgd",
    name: str = "model",
    named: NamedDevices | None = None,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
) -> Program:
    """Capture the step of a real model, which is left as it is.

    Args:
        named: the devices that were named where the model was built.

    The others, and errors, are those of `situate.capture`, whose graph the program has.
    """
    rule = update_rule(optimizer)
    check_installed()
    with quiet(), explained(name, "capturing the step"):
        real = from_real(model, inputs, loss, name, named)
        captured, separate = step_of(Traces(real, name), training, slices, recompute)
        step = to_step(captured, optimizer)
        check_functional(step.flow.ops)
        made = drafts(step)
        graph = checked(assemble(name, made, step, optimizer), training, captured)
    results, overwritten, gradients, mutations = _outputs(captured)
    nodes = tuple(draft.node for draft in made)
    return Program(
        graph,
        step,
        nodes,
        (*results, *overwritten.values()),
        tuple(overwritten),
        gradients,
        mutations,
        training,
        rule.kind,
        separate,
        captured.restore,
        real.devices,
    )


def _outputs(
    trace: Trace,
) -> tuple[list[fx.Node], dict[int, fx.Node], dict[str, tuple[fx.Node, ...]], dict[str, fx.Node]]:
    """The nodes of results, of new values by input, of gradients by parameter, and of new values
    by buffer."""
    results: list[fx.Node] = []
    overwritten: dict[int, fx.Node] = {}
    gradients: dict[str, tuple[fx.Node, ...]] = {}
    mutations: dict[str, fx.Node] = {}
    for node, descriptor in described_outputs(trace.graph):
        match type(descriptor).__name__:
            case "PlainAOTOutput":
                results.append(node)
            case "GradAOTOutput" if (name := path(descriptor.grad_of)) in trace.trainable:
                canonical = trace.canonical[name]
                gradients[canonical] = (*gradients.get(canonical, ()), node)
            case "InputMutationAOTOutput" if name := path(descriptor.mutated_input):
                mutations[name] = node
            case "InputMutationAOTOutput":
                overwritten[descriptor.mutated_input.idx] = node
    gradients |= {copy: gradients[name] for copy, name in trace.copies.items() if name in gradients}
    return results, overwritten, gradients, mutations
