"""Networks that represent the nodes of several graphs at once.

`GraphNetwork` passes messages along edges (A. Paliwal et al., REGAL, ICLR 2020, Eq. 1);
`SequenceNetwork` reads nodes in topological order (the graph-as-sequence model, 5.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from situate.policies.shapes import Aggregation, GraphShape


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Several graphs, with n nodes and e edges in all.

    Attributes:
        nodes: (n, f) features.
        edges: (e, g) features.
        source, target: (e,) the nodes of an edge.
        graph: (n,) the graph of a node.
        place: (n,) its place in a topological order of its graph, from 0.
        graphs: number of graphs.
    """

    nodes: Tensor
    edges: Tensor
    source: Tensor
    target: Tensor
    graph: Tensor
    place: Tensor
    graphs: int

    def sums(self, of_nodes: Tensor) -> Tensor:
        """(graphs, ...) sums of (n, ...) over the nodes of each graph."""
        empty = of_nodes.new_zeros(self.graphs, *of_nodes.shape[1:])
        return torch.as_tensor(empty.index_add(0, self.graph, of_nodes))


class GraphNetwork(nn.Module):
    """Representations (n, width) of nodes.

    Args:
        features: widths of the features of a node and of an edge.
        shape: see `GraphShape`.
        generator: draws the initial parameters.
    """

    def __init__(self, features: tuple[int, int], shape: GraphShape, generator: Generator) -> None:
        super().__init__()
        width, (of_node, of_edge) = shape.width, features
        self.shape = shape
        self.node = perceptron(of_node, width, width, generator)
        self.edge = perceptron(of_edge, width, width, generator)
        self.along = perceptron(3 * width, width, width, generator)
        self.against = perceptron(3 * width, width, width, generator)
        self.update: nn.Module = (
            nn.GRUCell(width, width)
            if shape.update == "gru"
            else perceptron(2 * width, width, width, generator)
        )
        if isinstance(self.update, nn.GRUCell):
            _initialise(self.update, width, generator)
        if shape.update == "residual":
            # At nodes of a hundred edges, sums of messages would grow to millions over the rounds
            # before anything is learnt.
            begin_as_zero(self.update)

    def forward(self, batch: GraphBatch) -> Tensor:
        """(n, width) representations after all rounds."""
        nodes: Tensor = self.node(batch.nodes)
        edges = self.edge(batch.edges)
        directions = [
            _Direction(self.along, edges, batch.target, len(nodes)),
            _Direction(self.against, edges, batch.source, len(nodes)),
        ]
        for _ in range(self.shape.rounds):
            received = [
                direction.messages(nodes, batch, self.shape.aggregation) for direction in directions
            ]
            nodes = self._updated(nodes, received[0] + received[1])
        return nodes

    def _updated(self, nodes: Tensor, messages: Tensor) -> Tensor:
        if self.shape.update == "gru":
            return torch.as_tensor(self.update(messages, nodes))
        update = self.update(torch.cat([nodes, messages], dim=1))
        return torch.as_tensor(nodes + update if self.shape.update == "residual" else update)


class _Direction:
    """Messages along all edges, or against them.

    The message network's first layer, of [h_s, h_t, h_e], is applied to sources, targets and edges
    separately, and its last layer to sums of messages: both are linear, and there are fewer nodes
    than edges. The edges' part is the same in every round.
    """

    def __init__(self, network: nn.Sequential, edges: Tensor, receiver: Tensor, n: int) -> None:
        self._first, self._last = network[0], network[2]
        width = edges.shape[1]
        # W [h_s, h_t, h_e] = W_s h_s + W_t h_t + W_e h_e, from W (width, 3 width).
        of_source, of_target, of_edge = self._first.weight.split(width, dim=1)  # type: ignore[operator]
        self._of_nodes = torch.cat([of_source, of_target]).t()
        self._of_edges = torch.addmm(self._first.bias, edges, of_edge.t())  # type: ignore[arg-type]
        self._receiver = receiver
        # (n, 1) messages that each node receives.
        ones = edges.new_ones(len(receiver), 1)
        self._count = edges.new_zeros(n, 1).index_add(0, receiver, ones)

    def messages(self, nodes: Tensor, batch: GraphBatch, aggregation: Aggregation) -> Tensor:
        """(n, width) sum or mean of the messages that each node receives."""
        sources, targets = (nodes @ self._of_nodes).chunk(2, dim=1)
        hidden = torch.relu(sources[batch.source] + targets[batch.target] + self._of_edges)
        total = torch.zeros_like(sources).index_add(0, self._receiver, hidden)
        if aggregation == "mean":
            total, count = total / self._count.clamp(min=1), self._count.clamp(max=1)
        else:
            count = self._count
        # The sum of c messages W h + b is W sum(h) + c b; in a mean c is 1, or 0 without messages.
        return torch.as_tensor(total @ self._last.weight.t() + count * self._last.bias)  # type: ignore[operator]


def perceptron(inputs: int, hidden: int, outputs: int, generator: Generator) -> nn.Sequential:
    """Two linear layers with rectified units between them (Eq. 3)."""
    layers = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)
    for layer in layers:
        _initialise(layer, layer.in_features, generator)
    return nn.Sequential(layers[0], nn.ReLU(), layers[1])


def begin_as_zero(network: nn.Module) -> None:
    """Let a `perceptron` return zeros for all inputs until it learns."""
    for parameter in network[2].parameters():  # type: ignore[index]
        nn.init.zeros_(parameter)


def _initialise(layer: nn.Module, inputs: int, generator: Generator) -> None:
    """Draw PyTorch's own initial parameters from a generator: uniform within 1 / sqrt(inputs)."""
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -(inputs**-0.5), inputs**-0.5, generator=generator)


class SequenceNetwork(nn.Module):
    """Representations (n, width) of nodes, by an LSTM that reads them in both directions.

    Args:
        features: width of a node's features; edges are not read.
        shape: only its width is used.
        generator: draws the initial parameters.
    """

    def __init__(self, features: int, shape: GraphShape, generator: Generator) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, shape.width, bidirectional=True)
        self.last = nn.Linear(2 * shape.width, shape.width)
        _initialise(self.lstm, shape.width, generator)
        _initialise(self.last, 2 * shape.width, generator)

    def forward(self, batch: GraphBatch) -> Tensor:
        """(n, width) representations."""
        # Graphs by their size, the largest first; then their nodes by place, and those of one place
        # by graph: PyTorch's form of sequences of different lengths.
        sizes = torch.bincount(batch.graph, minlength=batch.graphs)
        rank = torch.empty_like(sizes)
        rank[sizes.argsort(descending=True, stable=True)] = torch.arange(batch.graphs)
        packed = (batch.place * batch.graphs + rank[batch.graph]).argsort()
        lengths = torch.bincount(batch.place)
        states, _ = self.lstm(PackedSequence(batch.nodes[packed], lengths))
        unpacked = torch.zeros_like(states.data).index_copy(0, packed, states.data)
        return torch.as_tensor(self.last(unpacked))
