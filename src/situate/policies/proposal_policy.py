"""A policy over the nodes of a graph, and its baseline.

The choices at the nodes are independent of one another given the graph (A. Paliwal et al., REGAL,
ICLR 2020, Eq. 2).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from situate.policies.graph_network import (
    GraphBatch,
    GraphNetwork,
    SequenceNetwork,
    begin_as_zero,
    perceptron,
)
from situate.policies.shapes import GraphShape


class ProposalPolicy(nn.Module):
    """Categorical distributions of the choices at every node; initially uniform.

    Args:
        features: widths of the features of a node and of an edge.
        choices: number of categories of each of the c choices at a node.
        shape: of the network that represents nodes.
        generator: draws the initial parameters.
    """

    def __init__(
        self,
        features: tuple[int, int],
        choices: Sequence[int],
        shape: GraphShape,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.choices = list(choices)
        self.network = _network(features, shape, generator)
        self.head = perceptron(shape.width, shape.width, sum(choices), generator)
        begin_as_zero(self.head)

    def log_probs(self, batch: GraphBatch) -> list[Tensor]:
        """(n, categories) log-probabilities of each choice."""
        logits = self.head(self.network(batch))
        return [part.log_softmax(dim=1) for part in logits.split(self.choices, dim=1)]

    @torch.no_grad()
    def sample(self, batch: GraphBatch, samples: int, generator: Generator) -> Tensor:
        """(samples, n, c) sampled categories of the choices at each node."""
        log_probs = self.log_probs(batch)
        return torch.stack(
            [
                _sample_categories(log_probs_of_choice, samples, generator)
                for log_probs_of_choice in log_probs
            ],
            dim=2,
        )


def log_prob(log_probs: Sequence[Tensor], actions: Tensor, batch: GraphBatch) -> Tensor:
    """(samples, graphs) log-probability of actions (samples, n, c) at all nodes of each graph."""
    # Each choice: (n, categories) at (samples, n) becomes (n, samples).
    chosen_log_probs = [
        log_probs_of_choice.gather(1, action.t())
        for log_probs_of_choice, action in zip(log_probs, actions.unbind(dim=2), strict=True)
    ]
    return batch.sums(torch.stack(chosen_log_probs).sum(dim=0)).t()


class Baseline(nn.Module):
    """The expected reward of a graph, by a network of its own; see `ProposalPolicy`.

    Args:
        first: about the value for every graph before training.
    """

    def __init__(
        self, features: tuple[int, int], shape: GraphShape, generator: Generator, first: float
    ) -> None:
        super().__init__()
        width = shape.width
        self.network = _network(features, shape, generator)
        self.of_node = perceptron(width, width, width, generator)
        self.of_graph = perceptron(width, width, 1, generator)
        nn.init.constant_(self.of_graph[2].bias, first)  # type: ignore[arg-type]

    def forward(self, batch: GraphBatch) -> Tensor:
        """(graphs,): MLP_b of the mean over nodes of MLP_g."""
        sums = batch.sums(self.of_node(self.network(batch)))
        # (graphs, 1) the number of nodes of each graph.
        sizes = batch.sums(sums.new_ones(len(batch.graph), 1))
        return torch.as_tensor(self.of_graph(sums / sizes)[:, 0])


def _network(features: tuple[int, int], shape: GraphShape, generator: Generator) -> nn.Module:
    if shape.kind == "sequence":
        return SequenceNetwork(features[0], shape, generator)
    return GraphNetwork(features, shape, generator)


def _sample_categories(log_probs: Tensor, samples: int, generator: Generator) -> Tensor:
    """(samples, n) draws from distributions (n, categories), by Gumbel noise."""
    # The largest of log p + g, with Gumbel noise g = -log(-log u), is a draw from p.
    uniform = torch.rand(samples, *log_probs.shape, generator=generator)
    return (log_probs - torch.log(-torch.log(uniform))).argmax(dim=2)
