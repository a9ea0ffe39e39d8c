"""RNNLM: a language model of four LSTM layers (Jozefowicz et al., 2016), unrolled.

Four layers and a batch of 64 are the placement papers'. They give neither cells nor steps nor
vocabulary: 1024 cells a layer are a choice, 35 steps and 10,000 words are Penn Treebank's (Zaremba
et al., 2014).
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
