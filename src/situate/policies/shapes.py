"""Shapes of the policies' networks, without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Score = Literal["additive", "general"]
"""The way attention compares, see `situate.policies.attention.Attention`."""


@dataclass(frozen=True)
class Shape:
    """The shape of `situate.policies.seq2seq.Placer`; the attributes mean what they mean there."""

    hidden: int = 64
    layers: int = 1
    score: Score = "additive"
    width: int = 32
    aligned: bool = False


Kind = Literal["graph", "sequence"]
Update = Literal["plain", "residual", "gru"]
Aggregation = Literal["sum", "mean"]


@dataclass(frozen=True)
class GraphShape:
    """The shape of a network that represents the nodes of a graph.

    Attributes:
        width: numbers that represent a node or an edge.
        rounds: of message passing, T in the paper.
        update: the next representation of a node is made of the last one and its messages by a
            network (`plain`), is the sum of that and the last one (`residual`), or comes of a gated
            recurrent unit (`gru`).
        aggregation: messages of a direction are added up, or averaged.
        kind: a graph network, or a recurrent one over the nodes in topological order, of which the
            width alone counts.
    """

    width: int = 32
    rounds: int = 16
    update: Update = "residual"
    aggregation: Aggregation = "sum"
    kind: Kind = "graph"
