"""A graph network that scores edges and ops, written once for numpy and for PyTorch.

Messages pass along edges and against them, as in REGAL (A. Paliwal et al., ICLR 2020, Eq. 1). They
are divided by the square root of their number, and a node's additions to its representation are of
layer-normalised inputs (Ba, Kiros and Hinton, arXiv:1607.06450). So representations stay of one
size at nodes of a thousand edges. Inference needs no PyTorch, whose start takes longer than most
searches for a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = Any
"""An array of numpy or a tensor of PyTorch, of 32-bit floats."""

Parameters = Mapping[str, Array]

EPSILON = 1e-5
"""Added to variances, as PyTorch does."""


@dataclass(frozen=True)
class EdgeShape:
    """The shape of the network.

    Attributes:
        features: widths of the features of a node and of an edge.
        width: numbers that represent a node or an edge.
        rounds: rounds of message passing.
        ops: True to score nodes as well.
    """

    features: tuple[int, int]
    width: int = 32
    rounds: int = 4
    ops: bool = False

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter by name."""
        node, edge = self.features
        # An edge with both of its ends, or a node with its messages from both sides.
        three = 3 * self.width
        layers = {"node": node, "edge": edge, "score": three}
        if self.ops:
            layers["op"] = self.width
        for i in range(self.rounds):
            layers |= {f"along.{i}": three, f"against.{i}": three, f"update.{i}": three}
        shapes: dict[str, tuple[int, ...]] = {}
        for name, inputs in layers.items():
            outputs = 1 if name in ("score", "op") else self.width
            shapes |= {
                f"{name}.0": (inputs, self.width),
                f"{name}.0.bias": (self.width,),
                f"{name}.1": (self.width, outputs),
                f"{name}.1.bias": (outputs,),
            }
        return shapes


class Operations(Protocol):
    """The operations in which numpy and PyTorch differ."""

    def relu(self, x: Array) -> Array:
        """Rectified units."""
        ...

    def join(self, parts: Sequence[Array]) -> Array:
        """Parts (n, ...) side by side."""
        ...

    def sums(self, of_edges: Array, node: Array, n: int) -> Array:
        """(n, width) sums of rows (e, width) by their nodes (e,)."""
        ...

    def standardised(self, x: Array) -> Array:
        """Rows of mean 0 and variance 1."""
        ...


class NumpyOperations:
    """See `Operations`."""

    def relu(self, x: Array) -> Array:
        """See `Operations`."""
        return np.maximum(x, np.float32(0))

    def join(self, parts: Sequence[Array]) -> Array:
        """See `Operations`."""
        return np.concatenate(parts, axis=1)

    def sums(self, of_edges: Array, node: Array, n: int) -> Array:
        """See `Operations`."""
        width = of_edges.shape[1]
        # One count over all cells is ten times as fast as `np.add.at`.
        cells = (node[:, None] * width + np.arange(width)).ravel()
        total = np.bincount(cells, of_edges.ravel(), minlength=n * width)
        return total.reshape(n, width).astype(np.float32)

    def standardised(self, x: Array) -> Array:
        """See `Operations`."""
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt(centred.var(axis=1, keepdims=True) + np.float32(EPSILON))


@dataclass(frozen=True, eq=False, slots=True)
class EdgeGraph:
    """A graph, or several side by side, with n nodes and e edges.

    Attributes:
        nodes: (n, f) features.
        edges: (e, g) features.
        source, target: (e,) nodes of each edge, 64-bit.
        received, sent: (n, 1) square roots of each node's numbers of incoming and outgoing edges,
            1 for none.
    """

    nodes: Array
    edges: Array
    source: Array
    target: Array
    received: Array
    sent: Array


def edge_graph(
    nodes: NDArray[np.float32],
    edges: NDArray[np.float32],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
) -> EdgeGraph:
    """The graph of these features and edges."""
    received, sent = (
        np.sqrt(np.maximum(np.bincount(end, minlength=len(nodes)), 1))[:, None].astype(np.float32)
        for end in (target, source)
    )
    return EdgeGraph(nodes, edges, source, target, received, sent)


def logits(
    parameters: Parameters, graph: EdgeGraph, operations: Operations
) -> tuple[Array, Array | None]:
    """(e,) the logit of each edge, and (n,) of each node if the network scores nodes."""
    net = _Network(parameters, operations)
    nodes, edges = net.perceptron("node", graph.nodes), net.perceptron("edge", graph.edges)
    # Each update network has four parameters: two matrices and two biases.
    for i in range(sum(name.startswith("update.") for name in parameters) // 4):
        ends = operations.join([nodes[graph.source], nodes[graph.target], edges])
        n = len(nodes)
        along = operations.sums(net.perceptron(f"along.{i}", ends), graph.target, n)
        against = operations.sums(net.perceptron(f"against.{i}", ends), graph.source, n)
        # At a node of k edges, sums of k messages grow with sqrt(k).
        inputs = operations.join([nodes, along / graph.received, against / graph.sent])
        nodes = nodes + net.perceptron(f"update.{i}", operations.standardised(inputs))
    ends = operations.join([nodes[graph.source], nodes[graph.target], edges])
    of_nodes = net.perceptron("op", nodes)[:, 0] if "op.0" in parameters else None
    return net.perceptron("score", ends)[:, 0], of_nodes


class _Network:
    def __init__(self, parameters: Parameters, operations: Operations) -> None:
        self._parameters, self._operations = parameters, operations

    def perceptron(self, name: str, x: Array) -> Array:
        """Two linear layers with rectified units between them."""
        p = self._parameters
        hidden = self._operations.relu(x @ p[f"{name}.0"] + p[f"{name}.0.bias"])
        return hidden @ p[f"{name}.1"] + p[f"{name}.1.bias"]
