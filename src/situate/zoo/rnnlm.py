"""RNNLM: a language model of four LSTM layers (Jozefowicz et al., 2016), unrolled.

The placement papers use four layers and a batch of 64, but publish neither cells, steps nor
vocabulary. Here a layer has 1024 cells; 35 steps and 10,000 words are those of Penn Treebank
(Zaremba et al., 2014).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate.zoo.lstm import Cell, unroll
from situate.zoo.parts import ModelParts

VOCABULARY, HIDDEN, LAYERS, STEPS = 10_000, 1024, 4, 35


class RNNLM(nn.Module):
    """Tokens (batch, steps) to logits (steps * batch, vocabulary)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Cell(HIDDEN, HIDDEN) for _ in range(LAYERS))
        self.softmax = nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        steps = list(self.embedding(tokens).unbind(1))
        for layer in self.layers:
            assert isinstance(layer, Cell)
            # Layer by layer, not step by step: step t of a layer needs step t of the layer below.
            steps, _ = unroll(layer, steps)
        logits: Tensor = self.softmax(torch.cat(steps))
        return logits


def loss(model: nn.Module, tokens: Tensor, following: Tensor) -> Tensor:
    """Cross entropy with the words that follow."""
    return F.cross_entropy(model(tokens), following.t().flatten())


def build(batch: int = 64) -> ModelParts:
    """Model, inputs and loss."""
    tokens, following = torch.randint(VOCABULARY, (2, batch, STEPS)).unbind()
    return RNNLM(), (tokens, following), loss
