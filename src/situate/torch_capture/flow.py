"""The storages that every node of a captured graph reads and writes. A view has the storage of its
base."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from situate.torch_capture.names import path, state_name
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    import torch
    from torch import fx

Storage = tuple["fx.Node", int]
"""An output of a node that computes, or a placeholder."""

APART = "apart"
"""Marks, in a node's `meta`, a copy that is no alias of its original."""


@dataclass(frozen=True)
class Flow:
    """The data flow of a step, without dead code.

    Attributes:
        ops: the nodes that compute, in order.
        reads: the distinct storages that each of them reads.
        results: the step's outputs and the new values of its inputs.
        gradients: by parameter or copy of one, a gradient for each of its names.
        mutations: by buffer, its new value.
    """

    ops: tuple[fx.Node, ...]
    reads: dict[fx.Node, tuple[Storage, ...]]
    results: tuple[Storage, ...]
    gradients: dict[str, tuple[Storage, ...]]
    mutations: dict[str, Storage]

    @cached_property
    def readers(self) -> dict[Storage, list[fx.Node]]:
        """The nodes that read a storage, in order."""
        readers: dict[Storage, list[fx.Node]] = {}
        for node in self.ops:
            for storage in self.reads[node]:
                readers.setdefault(storage, []).append(node)
        return readers

    @cached_property
    def used(self) -> set[Storage]:
        """Storages that an op, an update or the caller reads."""
        gradients = (s for storages in self.gradients.values() for s in storages)
        return {*self.readers, *self.results, *gradients, *self.mutations.values()}


def flow(trace: Trace) -> Flow:
    """The data flow of a trace. Every view, alias and tied parameter counts as the storage behind
    it."""
    storage = storages(trace)
    results, gradients, mutations = _outputs(trace, storage)
    live = [*results, *mutations.values(), *(g for gs in gradients.values() for g in gs)]
    reads: dict[fx.Node, tuple[Storage, ...]] = {}
    pending = [node for node, _ in live]
    # Backwards from the results, so that dead code is never reached.
    while pending:
        node = pending.pop()
        if node.op == "call_function" and node not in reads:
            inputs = (storage[source] for source in _inputs(node))
            reads[node] = tuple(dict.fromkeys(inputs))
            pending.extend(source for source, _ in reads[node])
    ops = tuple(node for node in trace.graph.nodes if node in reads)
    return Flow(ops, reads, results, gradients, mutations)


def storages(trace: Trace) -> dict[fx.Node, Storage]:
    """The storage that every node of a trace is in."""
    # AOTAutograd makes one placeholder per name of a tied parameter; they are one storage.
    storage: dict[fx.Node, Storage] = {}
    parameters: dict[str, Storage] = {}
    for node in trace.graph.nodes:
        storage[node] = (node, 0)
        if node.op == "placeholder" and (name := trace.canonical.get(state_name(node))):
            storage[node] = parameters.setdefault(name, (node, 0))
        elif node.op == "call_function" and (source := base(node)) is not None:
            storage[node] = storage[source]
        elif node.target is operator.getitem:
            # An item of an op with several outputs is one of its storages.
            storage[node] = (node.args[0], node.args[1])
    return storage


def base(node: fx.Node) -> Any:
    """The node whose storage this one shares; None if it has its own."""
    import torch

    aten = torch.ops.aten
    source: Any = node.args[0] if node.args else None
    if node.target is operator.getitem:
        # Operators such as `split` return a list of views: if the list is an alias, each item is.
        shares = base(source) is not None
    elif node.target is aten.clone.default:
        # Functionalisation leaves no writes, so a clone of equal layout is indistinguishable from
        # its source.
        shares = APART not in node.meta and is_plain_copy(node, source)
    else:
        shares = node.target in _undeclared_views() or getattr(node.target, "is_view", False)
    return source if shares and source in node.all_input_nodes else None


def _undeclared_views() -> tuple[Any, ...]:
    """Operators whose output shares, or may share, its input's storage, though their schema does
    not say so."""
    import torch

    aten = torch.ops.aten
    splits = (aten.unsafe_split.Tensor, aten.unsafe_split_with_sizes.default)
    return (aten._unsafe_view.default, aten.lift_fresh_copy.default, *splits)


def keep_apart(trace: Trace) -> None:
    """Mark returned copies of state that the step overwrites, so that they stay copies."""
    import torch

    outputs = list(described_outputs(trace.graph))
    names = (path(getattr(descriptor, "mutated_input", None)) for _, descriptor in outputs)
    overwritten = {trace.canonical.get(name, name) for name in names if name}
    for node, descriptor in outputs:
        if type(descriptor).__name__ == "PlainAOTOutput":
            *aliases, origin = _aliases(node)
            copies = [alias for alias in aliases if alias.target is torch.ops.aten.clone.default]
            if (
                copies
                and trace.canonical.get(state_name(origin), state_name(origin)) in overwritten
            ):
                # The copy nearest to the state separates all later aliases from it.
                copies[-1].meta[APART] = True


def _aliases(node: fx.Node) -> list[fx.Node]:
    """The node and all nodes that it aliases, up to the owner of the storage."""
    aliases = [node]
    while aliases[-1].op == "call_function" and (source := base(aliases[-1])) is not None:
        aliases.append(source)
    return aliases


def is_plain_copy(node: fx.Node, source: fx.Node) -> bool:
    """True for a copy that a functional graph cannot tell from the original. A copy of a conjugate
    or negative view is none: it is the first to hold the numbers in memory."""
    copy, original = node.meta["val"], source.meta["val"]
    return layout(copy) == layout(original)


def layout(value: torch.Tensor) -> tuple[object, ...]:
    """The memory layout of a tensor, with its conjugate and negative bits."""
    return value.shape, value.stride(), value.is_conj(), value.is_neg()


def _inputs(node: fx.Node) -> list[fx.Node]:
    """The nodes whose values a node reads."""
    import torch

    inputs = node.all_input_nodes
    # Batch norm's backward takes the running statistics too, but reads them only in inference.
    if node.target is torch.ops.aten.native_batch_norm_backward.default and node.args[7]:
        return [source for source in inputs if source not in node.args[3:5]]
    return inputs


def _outputs(
    trace: Trace, storage: dict[fx.Node, Storage]
) -> tuple[tuple[Storage, ...], dict[str, tuple[Storage, ...]], dict[str, Storage]]:
    """The step's results with new values of inputs, gradients by parameter, and new values by
    buffer."""
    results: list[Storage] = []
    gradients: dict[str, list[Storage]] = {}
    mutations: dict[str, Storage] = {}
    for node, descriptor in described_outputs(trace.graph):
        # By name, because the module of AOTAutograd's descriptors is private to PyTorch.
        match type(descriptor).__name__:
            case "PlainAOTOutput":
                results.append(storage[node])
            case "GradAOTOutput" if (name := path(descriptor.grad_of)) in trace.trainable:
                gradients.setdefault(trace.canonical[name], []).append(storage[node])
            case "InputMutationAOTOutput" if name := path(descriptor.mutated_input):
                mutations[name] = storage[node]
            case "InputMutationAOTOutput":
                results.append(storage[node])
    # All replicas of a parameter are updated by the same gradients.
    gradients |= {copy: gradients[name] for copy, name in trace.copies.items() if name in gradients}
    return tuple(results), {name: tuple(gs) for name, gs in gradients.items()}, mutations


def live_nodes(trace: Trace) -> set[fx.Node]:
    """The nodes on which outputs of a step depend."""
    pending = [node for node, _ in described_outputs(trace.graph)]
    live = set(pending)
    while pending:
        sources = [source for source in pending.pop().all_input_nodes if source not in live]
        pending += sources
        live.update(sources)
    return live


def overwritten(trace: Trace) -> Iterator[str]:
    """The parameters and buffers that a step writes over without an update."""
    for _, descriptor in described_outputs(trace.graph):
        if type(descriptor).__name__ == "InputMutationAOTOutput":
            name = path(descriptor.mutated_input)
            yield trace.canonical.get(name, name)


def described_outputs(graph: fx.Graph) -> Iterator[tuple[fx.Node, Any]]:
    """The outputs of the graph, each with PyTorch's descriptor of its meaning."""
    output = graph.output_node()
    nodes: Any = output.args[0]
    for node, descriptor in zip(nodes, output.meta["desc"], strict=True):
        if hasattr(node, "op"):
            yield node, descriptor
