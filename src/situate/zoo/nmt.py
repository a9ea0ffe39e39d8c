"""NMT: encoder and decoder of LSTM layers with attention (Bahdanau et al., ICLR 2015; GNMT, Wu et
al., 2016), unrolled.

The placement papers use 2, 4 and 8 layers and a batch of 64, but publish neither the number of
cells nor of steps. Here a layer has 1024 cells, as in GNMT, the vocabulary is that of WMT's 32,000
byte pairs, and sentences have 128 tokens, so that the step exceeds one GPU as in the papers; see
docs/zoo.md.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate.zoo.lstm import Cell, State, start, unroll
from situate.zoo.parts import ModelParts

VOCABULARY, HIDDEN, STEPS = 36_548, 1024, 128


class Encoder(nn.Module):
    """The first layer reads in both directions, the others forward."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.backward_layer = Cell(HIDDEN, HIDDEN)
        # The second layer reads both directions of the first, hence its double width.
        widths = [HIDDEN, 2 * HIDDEN, *[HIDDEN] * layers][:layers]
        self.layers = nn.ModuleList(Cell(width, HIDDEN) for width in widths)

    def forward(self, steps: list[Tensor]) -> tuple[list[Tensor], list[State]]:
        reverse, _ = unroll(self.backward_layer, steps[::-1])
        states = []
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, Cell)
            steps, state = unroll(layer, steps)
            states.append(state)
            if i == 0:
                both = zip(steps, reverse[::-1], strict=True)
                steps = [torch.cat(pair, 1) for pair in both]
        return steps, states


class Attention(nn.Module):
    """Additive attention over the encoder's outputs (Bahdanau et al., A.1.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.score = nn.Linear(HIDDEN, 1, bias=False)

    def forward(self, output: Tensor, memory: Tensor, keys: Tensor) -> Tensor:
        # e_j = v^T tanh(W s + U h_j); the keys U h_j are the same for every step of the decoder.
        energy = torch.tanh(keys + self.query(output).unsqueeze(1))
        weights = torch.softmax(self.score(energy), 1)
        return torch.bmm(weights.transpose(1, 2), memory).squeeze(1)


class Decoder(nn.Module):
    """Every step reads a word and the attention of the step before."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        widths = [2 * HIDDEN, *[HIDDEN] * (layers - 1)]
        self.layers = nn.ModuleList(Cell(width, HIDDEN) for width in widths)
        self.attention = Attention()

    def forward(
        self, steps: list[Tensor], states: list[State], memory: Tensor, keys: Tensor
    ) -> list[Tensor]:
        context, outputs = start(steps[0], HIDDEN)[0], []
        # Steps run in sequence: each needs the attention of the step before.
        for word in steps:
            x = torch.cat([word, context], 1)
            for i, layer in enumerate(self.layers):
                states[i] = layer(x, states[i])
                x = states[i][0]
            context = self.attention(x, memory, keys)
            outputs.append(torch.cat([x, context], 1))
        return outputs


class NMT(nn.Module):
    """Source and target tokens (batch, steps) to logits (steps * batch, vocabulary)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.target_embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.encoder, self.decoder = Encoder(layers), Decoder(layers)
        self.keys = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.combine = nn.Linear(2 * HIDDEN, HIDDEN)
        self.softmax = nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        words, states = self.encoder(list(self.source_embedding(source).unbind(1)))
        memory = torch.stack(words, 1)
        targets = list(self.target_embedding(target).unbind(1))
        # One softmax over the vocabulary for all steps together is a single large product.
        outputs = torch.cat(self.decoder(targets, states, memory, self.keys(memory)))
        logits: Tensor = self.softmax(torch.tanh(self.combine(outputs)))
        return logits


def loss(model: nn.Module, source: Tensor, target: Tensor, following: Tensor) -> Tensor:
    """Cross entropy with the target's words, one step ahead."""
    return F.cross_entropy(model(source, target), following.t().flatten())


def build(layers: int, batch: int = 64, steps: int = STEPS) -> ModelParts:
    """Model, inputs and loss; encoder and decoder have `layers` layers each, unrolled `steps`
    times."""
    if layers < 2:
        raise ValueError("the memory of attention needs a layer after the bidirectional one")
    tokens = torch.randint(VOCABULARY, (3, batch, steps))
    return NMT(layers), tuple(tokens.unbind()), loss
