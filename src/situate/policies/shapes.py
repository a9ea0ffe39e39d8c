"""Shapes of the policies' networks, without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Score = Literal["additive", "general"]
"""Score of the attention, see `situate.policies.attention.Attention`."""


Kind = Literal["graph", "sequence"]

Update = Literal["plain", "residual", "gru"]

Aggregation = Literal["sum", "mean"]


@dataclass(frozen=True)
class Shape:
    """Shape of a `situate.policies.seq2seq.Placer`; the attributes have the same meaning there."""

    hidden: int = 64
    layers: int = 1
    score: Score = "additive"
    width: int = 32
    aligned: bool = False


@dataclass(frozen=True)
class GraphShape:
    """The shape of a network that represents the nodes of a graph.

    Attributes:
        width: numbers that represent a node or an edge.
        rounds: rounds of message passing, T in the paper.
        update: the next representation of a node: a network of the last one and its messages
            (`plain`), the sum of that and the last one (`residual`), or a gated recurrent unit
            (`gru`).
        aggregation: messages of one direction are summed, or averaged.
        kind: a graph network, or a recurrent network over the nodes in topological order, which
            uses the width alone.
    """

    width: int = 32
    rounds: int = 16
    update: Update = "residual"
    aggregation: Aggregation = "sum"
    kind: Kind = "graph"
