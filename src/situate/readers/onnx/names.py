"""Names in an ONNX graph and its bodies: of nodes, inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


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
