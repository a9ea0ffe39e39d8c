"""Nodes of an ONNX graph and its bodies: their names, the values they read, and new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


# Names in an ONNX graph and its bodies: of nodes, inputs and outputs.
def node_name(node: Any) -> str:
    """The node's own, else its first output's, else its operator's."""
    return node.name or next(filter(None, node.output), "") or node.op_type or "op"


def bodies_of(node: Any) -> Iterator[Any]:
    """The graphs in the node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def nodes_of(graph: Any) -> Iterator[Any]:
    """All nodes, including those of bodies."""
    for node in graph.node:
        yield node
        for body in bodies_of(node):
            yield from nodes_of(body)


def graphs_of(graph: Any) -> Iterator[Any]:
    """The graph and all bodies in it."""
    yield graph
    for node in graph.node:
        for body in bodies_of(node):
            yield from graphs_of(body)


def reads(node: Any) -> list[str]:
    """The values a node reads, each once, including outer values that its bodies read."""
    own = [value for value in node.input if value]
    return list(dict.fromkeys([*own, *(v for body in bodies_of(node) for v in free(body))]))


def free(body: Any) -> Iterator[str]:
    """The values that a body takes from outside."""
    defined = constant_names(body) | {value for node in body.node for value in node.output}
    inputs = [value for node in body.node for value in reads(node)]
    yield from (v for v in (*inputs, *(output.name for output in body.output)) if v not in defined)


def constant_names(graph: Any) -> set[str]:
    """The values that a graph has before any node runs."""
    names = {value.name for value in (*graph.input, *graph.initializer)}
    return names | {sparse.values.name for sparse in graph.sparse_initializer}


# Nodes of standard operators that stand in place of others.
AXES_ARE_INPUTS = 13
"""The first version with axes and sizes as inputs instead of attributes."""


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    """A node of the standard domain."""
    import onnx

    return onnx.helper.make_node(kind, inputs, outputs, **attributes)


def constant(name: str, numbers: Sequence[int], shape: Sequence[int], kind: str = "INT64") -> Any:
    """A node that makes a value of these numbers."""
    import onnx

    number = onnx.TensorProto.DataType.Value(kind)
    return node("Constant", [], [name], value=onnx.helper.make_tensor("", number, shape, numbers))


@dataclass(frozen=True)
class Maker:
    """Makes nodes in a version of the standard operators."""

    version: int
    fresh: Callable[[str], str]
    """Makes a name that no value has."""

    def views(self, kind: str, names: Sequence[str], axis: int) -> tuple[list[Any], list[str]]:
        """`Squeeze` or `Unsqueeze` of each value: the nodes and their outputs."""
        outputs = [self.fresh(f"{name}/{kind}") for name in names]
        pairs = zip(names, outputs, strict=True)
        if self.version < AXES_ARE_INPUTS:
            return [node(kind, [a], [b], axes=[axis]) for a, b in pairs], outputs
        axes = constant(self.fresh(f"{kind}/axes"), [axis], [1])
        return [axes, *(node(kind, [a, axes.output[0]], [b]) for a, b in pairs)], outputs

    def split(
        self, name: str, value: str, sizes: Sequence[int], axis: int
    ) -> tuple[list[Any], list[str]]:
        """`Split` into parts of these sizes: the nodes and their outputs."""
        outputs = [self.fresh(f"{value}/part") for _ in sizes]
        if not outputs:
            return [], []
        if self.version < AXES_ARE_INPUTS:
            return [node("Split", [value], outputs, axis=axis, split=sizes, name=name)], outputs
        part_sizes = constant(self.fresh(f"{value}/sizes"), sizes, [len(sizes)])
        return [
            part_sizes,
            node("Split", [value, part_sizes.output[0]], outputs, axis=axis, name=name),
        ], outputs
