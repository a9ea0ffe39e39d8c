"""A recurrent network over the nodes of graphs, each in an order in which producers come before
consumers (the graph-as-sequence model of REGAL, A. Paliwal et al., ICLR 2020, 5.2)."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from situate.policies.graph_network import GraphBatch, initialise
from situate.policies.graph_shape import GraphShape


class SequenceNetwork(nn.Module):
    """Representations (n, width) of nodes, by an LSTM that reads them in both directions.

    Args:
        features: of a node; edges are not read.
        shape: of which the width alone counts.
        generator: draws the initial parameters.
    """

    def __init__(self, features: int, shape: GraphShape, generator: Generator) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, shape.width, bidirectional=True)
        self.last = nn.Linear(2 * shape.width, shape.width)
        initialise(self.lstm, shape.width, generator)
        initialise(self.last, 2 * shape.width, generator)

    def forward(self, batch: GraphBatch) -> Tensor:
        """(n, width)."""
        # Graphs by their size, the largest first; then their nodes by place, and those of one place
        # by graph: PyTorch's form of sequences of different lengths.
        sizes = torch.bincount(batch.graph, minlength=batch.graphs)
        rank = torch.empty_like(sizes)
        rank[sizes.argsort(descending=True, stable=True)] = torch.arange(batch.graphs)
        packed = (batch.place * batch.graphs + rank[batch.graph]).argsort()
        lengths = torch.bincount(batch.place)
        read, _ = self.lstm(PackedSequence(batch.nodes[packed], lengths))
        made = torch.zeros_like(read.data).index_copy(0, packed, read.data)
        return torch.as_tensor(self.last(made))
