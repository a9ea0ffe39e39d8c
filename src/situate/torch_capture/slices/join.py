"""The traces of a step's slices, joined into the trace of one step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from situate.data.slices import Sums
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.names import INPUT, NAME, SLICE, path, state_name
from situate.torch_capture.nodes import add_call, module_of
from situate.torch_capture.slices.cut import Cut
from situate.torch_capture.slices.norms import Backward, Forward, meet
from situate.torch_capture.slices.over_batch import OverBatch
from situate.torch_capture.slices.replicas import Replicas
from situate.torch_capture.slices.sums import GradientSums
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    import torch
    from torch import fx


def joined(
    parts: Sequence[Trace],
    cut: Cut,
    divisors: Sequence[float],
    replicas: Replicas,
    norms: OverBatch,
    sums: Sums,
) -> Trace:
    """The step that computes slice after slice and adds up losses in this order.

    Gradients are added replica by replica in the given order. Where batch norms take their
    statistics over the batch, every slice advances to the next such norm in turn.

    Parameters and buffers exist once, except those of replicas. A slice hands each buffer that it
    writes to the next slice of its replica, and the first replica's buffers remain. The step
    returns the sum of the losses.

    Args:
        parts: the trace of each slice, of the same step.
        cut: of the step's inputs.
        divisors: by slice, the divisor of its loss before differentiation.
        replicas: of the parameters.
        norms: that take their statistics over the batch.
        sums: the order in which gradients are added up.
    """
    step = _Step(cut, replicas, norms, sums)
    walks = [
        step.added(s, *arguments) for s, arguments in enumerate(zip(parts, divisors, strict=True))
    ]
    # Each walk stops at its next norm over the batch; the walks continue once all have met there.
    while met := [norm for walk in walks if (norm := next(walk, None)) is not None]:
        meet(met)
    first = parts[0]
    required_values = tuple(
        dataclasses.replace(
            arguments, number=cut.number(s, arguments.number), name=f"{arguments.name}, slice {s}"
        )
        for s, part in enumerate(parts)
        for arguments in part.required
    )
    whole = dataclasses.replace(
        first, graph=step.finished(), constants=step.constants, required=tuple(required_values)
    )
    return replicas.noted(whole)


class _Step:
    """A step that grows slice by slice.

    Attributes:
        graph: of the step.
        constants: by name.
    """

    def __init__(self, cut: Cut, replicas: Replicas, norms: OverBatch, sums: Sums) -> None:
        from torch import fx

        self.graph = fx.Graph()
        self.constants: dict[str, torch.Tensor] = {}
        self._cut, self._replicas, self._norms = cut, replicas, norms
        # The slice that is being added to.
        self._slice = -1
        # By path of a parameter, a copy of one or a buffer, or number of an input, what a slice
        # reads.
        self._values: dict[str | int, fx.Node] = {}
        # By replica and path of a buffer, what its slices have written; see `Replicas.writes`.
        self._buffer_values: dict[tuple[int, str], fx.Node] = {}
        # By path of a buffer, or number of an input, the placeholder's description and new value.
        self._new_values: dict[str | int, tuple[Any, fx.Node]] = {}
        self._gradients = GradientSums(self.graph, replicas.of_slice, sums)
        self._loss: tuple[Any, fx.Node] | None = None
        self._constants: dict[tuple[int, str], fx.Node] = {}

    def added(self, s: int, part: Trace, divisor: float) -> Iterator[Forward | Backward]:
        """Add a slice, and yield its part of each norm before the slices exchange statistics."""
        self._slice = s
        nodes: dict[fx.Node, fx.Node] = {}
        outputs = list(described_outputs(part.graph))
        gradients = _Gradients(part, outputs)
        for node in part.graph.nodes:
            if node.op == "placeholder":
                nodes[node] = self._placeholder(part, node, divisor)
            elif node.op == "get_attr":
                nodes[node] = self._constant(part, node, state_name(node))
            # A generator per slice: all slices reach a norm before any continues behind it.
            elif norm := self._norms.begin(self.graph, node, nodes, s):
                if norm.meets:
                    yield norm
                    # Other slices have been added to in the meantime.
                    self._slice = s
            elif node.op == "call_function" and node not in nodes:
                nodes[node] = self._copied(node, nodes)
            for name, descriptor, gradient_nodes in gradients.complete(node):
                self._accumulate(name, descriptor, [nodes[gradient] for gradient in gradient_nodes])
        for node, descriptor in outputs:
            self._take_output(nodes[node], descriptor, divisor)

    def finished(self) -> fx.Graph:
        """The graph, with all outputs of the step."""
        assert self._loss is not None
        results = [*self._new_values.values(), self._loss, *self._gradients.totals()]
        output = self.graph.output(tuple(node for _, node in results))
        output.meta["desc"] = [descriptor for descriptor, _ in results]
        return self.graph

    def _placeholder(self, part: Trace, node: fx.Node, divisor: float) -> fx.Node:
        """The node that stands in a slice for a placeholder."""
        descriptor: Any = node.meta["desc"]
        match type(descriptor).__name__:
            case "PlainAOTInput":
                return self._input(node, descriptor)
            case "TangentAOTInput":
                # The derivative of loss / divisor begins with 1 / divisor.
                one = self._copied(node, {})
                return self._divided(one, divisor)
        name = path(descriptor)
        if name in part.constants:
            return self._constant(part, node, name)
        # A buffer continues with the value that the slice before wrote.
        buffer = self._buffer_values.get(self._replicas.writes(name, self._slice))
        if buffer is not None:
            return buffer
        parameter = self._replicas.parameter_name(name, self._slice)
        if parameter not in self._values:
            self._values[parameter] = self.graph.node_copy(node)
            self._replicas.mark(self._values[parameter], self._slice)
        return self._values[parameter]

    def _input(self, node: fx.Node, descriptor: Any) -> fx.Node:
        number = self._cut.number(self._slice, descriptor.idx)
        if number not in self._values:
            whole = self._cut.axes[descriptor.idx] is None
            copied = self.graph.node_copy(node) if whole else self._copied(node, {})
            copied.meta["desc"] = dataclasses.replace(descriptor, idx=number)
            copied.meta[INPUT] = descriptor.idx
            self._values[number] = copied
        return self._values[number]

    def _constant(self, part: Trace, node: fx.Node, name: str) -> fx.Node:
        """A constant. Slices of one trace share it, and other traces may have another of the same
        name."""
        key = (id(part.graph), name)
        if key not in self._constants:
            copied = self._constants[key] = self.graph.node_copy(node)
            # Traces of slices of another size have constants of the same names.
            if name in self.constants:
                _rename(copied, f"_{self._slice}")
            self.constants[state_name(copied)] = part.constants[name]
        return self._constants[key]

    def _copied(self, node: fx.Node, nodes: dict[fx.Node, fx.Node]) -> fx.Node:
        copied = self.graph.node_copy(node, nodes.__getitem__)
        copied.meta[SLICE] = self._slice
        return copied

    def _divided(self, node: fx.Node, divisor: float) -> fx.Node:
        if divisor == 1:
            return node
        quotient = add_call(self.graph, "", "div.Tensor", node, divisor)
        quotient.meta[SLICE] = self._slice
        # The tangent belongs to the backward pass, the loss to the forward pass.
        quotient.meta["partitioner_tag"] = node.meta.get("partitioner_tag", "is_forward")
        return quotient

    def _accumulate(self, name: str, descriptor: Any, gradients: Sequence[fx.Node]) -> None:
        """Add a slice's gradients of a parameter, one per name, to the earlier slices' sum."""
        module = module_of(name)
        total, *others = gradients
        for other in others:
            total = add_call(self.graph, module, "add.Tensor", total, other)
            total.meta |= {SLICE: self._slice, NAME: f"{name}/add"}
        self._gradients.add(name, descriptor, self._slice, total)

    def _take_output(self, node: fx.Node, descriptor: Any, divisor: float) -> None:
        match type(descriptor).__name__:
            case "PlainAOTOutput":
                loss = self._divided(node, divisor)
                if self._loss is not None:
                    loss = add_call(self.graph, "", "add.Tensor", self._loss[1], loss)
                    loss.meta["partitioner_tag"] = "is_forward"
                self._loss = descriptor, loss
            case "InputMutationAOTOutput" if path(descriptor.mutated_input) in self._norms.buffers:
                # All slices compute the same averages over the batch; the first slice's stand for
                # them.
                self._new_values.setdefault(path(descriptor.mutated_input), (descriptor, node))
            case "InputMutationAOTOutput" if name := path(descriptor.mutated_input):
                buffer = self._replicas.writes(name, self._slice)
                self._buffer_values[buffer] = node
                if buffer == (0, name):
                    self._new_values[name] = descriptor, node
            case "InputMutationAOTOutput":
                mutated_input = descriptor.mutated_input
                number = self._cut.number(self._slice, mutated_input.idx)
                mutated = dataclasses.replace(mutated_input, idx=number)
                self._values[number] = node
                described = dataclasses.replace(descriptor, mutated_input=mutated)
                self._new_values[number] = described, node


class _Gradients:
    """The gradients of a slice, by the last node that a parameter's gradients wait for."""

    def __init__(self, part: Trace, outputs: Sequence[tuple[fx.Node, Any]]) -> None:
        self._nodes: dict[str, list[fx.Node]] = {}
        self._descriptor: dict[str, Any] = {}
        for node, descriptor in outputs:
            if type(descriptor).__name__ == "GradAOTOutput":
                name = path(descriptor.grad_of)
                if name in part.trainable:
                    name = part.canonical[name]
                    self._nodes.setdefault(name, []).append(node)
                    self._descriptor.setdefault(name, descriptor)
        self._missing = {name: set(nodes) for name, nodes in self._nodes.items()}
        self._of: dict[fx.Node, list[str]] = {}
        for name, nodes in self._nodes.items():
            for node in dict.fromkeys(nodes):
                self._of.setdefault(node, []).append(name)

    def complete(self, node: fx.Node) -> list[tuple[str, Any, list[fx.Node]]]:
        """Parameters whose gradients are complete once `node` has run, with their descriptors."""
        parameters = []
        for name in self._of.get(node, ()):
            self._missing[name].discard(node)
            # A tied parameter has several gradients; the sum waits for the last.
            if not self._missing[name]:
                parameters.append((name, self._descriptor[name], self._nodes[name]))
        return parameters


def _rename(constant: fx.Node, suffix: str) -> None:
    if constant.op == "get_attr":
        constant.target = f"{constant.target}{suffix}"
    else:
        descriptor: Any = constant.meta["desc"]
        constant.meta["desc"] = dataclasses.replace(descriptor, target=descriptor.target + suffix)
