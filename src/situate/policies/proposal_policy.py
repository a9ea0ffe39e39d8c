"""A policy over the nodes of a graph whose choices are independent of one another once the graph is
known (A. Paliwal et al., REGAL, ICLR 2020, Eq. 2), and the baseline beside it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from situate.policies.graph_network import GraphBatch, GraphNetwork, perceptron
from situate.policies.graph_shape import GraphShape


class ProposalPolicy(nn.Module):
    """Categorical distributions over choices at every node; begins as uniform ones.

    Args:
        features: of a node and of an edge.
        choices: how many categories each of the c choices at a node has.
        shape: of the graph network.
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
        self.network = GraphNetwork(features, shape, generator)
        self.head = perceptron(shape.width, shape.width, sum(choices), generator)
        for parameter in self.head[2].parameters():
            nn.init.zeros_(parameter)

    def log_probs(self, batch: GraphBatch) -> list[Tensor]:
        """(n, categories) of each choice."""
        logits = self.head(self.network(batch))
        return [part.log_softmax(dim=1) for part in logits.split(self.choices, dim=1)]

    @torch.no_grad()
    def sample(self, batch: GraphBatch, generator: Generator) -> Tensor:
        """(n, c) a category of each choice at each node."""
        return torch.stack([_drawn(each, generator) for each in self.log_probs(batch)], dim=1)

    @torch.no_grad()
    def most_likely(self, batch: GraphBatch) -> Tensor:
        """(n, c) the category of the largest probability, the first of equal ones."""
        return torch.stack([each.argmax(dim=1) for each in self.log_probs(batch)], dim=1)


def log_prob(log_probs: Sequence[Tensor], actions: Tensor, batch: GraphBatch) -> Tensor:
    """(graphs,) of what was chosen (n, c) at all nodes of each graph."""
    chosen = [
        each.gather(1, action[:, None]) for each, action in zip(log_probs, actions.t(), strict=True)
    ]
    return batch.sums(torch.cat(chosen, dim=1).sum(dim=1))


class Baseline(nn.Module):
    """The reward that is expected of a graph, from a network of its own; see `ProposalPolicy`."""

    def __init__(self, features: tuple[int, int], shape: GraphShape, generator: Generator) -> None:
        super().__init__()
        width = shape.width
        self.network = GraphNetwork(features, shape, generator)
        self.of_node = perceptron(width, width, width, generator)
        self.of_graph = perceptron(width, width, 1, generator)

    def forward(self, batch: GraphBatch) -> Tensor:
        """(graphs,): MLP_b of the mean over nodes of MLP_g."""
        sums = batch.sums(self.of_node(self.network(batch)))
        sizes = batch.sums(sums.new_ones(len(batch.graph), 1))
        return torch.as_tensor(self.of_graph(sums / sizes)[:, 0])


def _drawn(log_probs: Tensor, generator: Generator) -> Tensor:
    """(n,) a draw from each of distributions (n, categories), by Gumbel's noise."""
    uniform = torch.rand(log_probs.shape, generator=generator)
    return (log_probs - torch.log(-torch.log(uniform))).argmax(dim=1)
