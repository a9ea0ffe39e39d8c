"""The shape of a graph network, without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Update = Literal["plain", "residual", "gru"]
Aggregation = Literal["sum", "mean"]


@dataclass(frozen=True)
class GraphShape:
    """The shape of a graph network.

    Attributes:
        width: numbers that represent a node or an edge.
        rounds: of message passing, T in the paper.
        update: the next representation of a node is made of the last one and its messages by a
            network (`plain`), is the sum of that and the last one (`residual`), or comes of a gated
            recurrent unit (`gru`).
        aggregation: messages of a direction are added up, or averaged.
    """

    width: int = 32
    rounds: int = 16
    update: Update = "residual"
    aggregation: Aggregation = "sum"
