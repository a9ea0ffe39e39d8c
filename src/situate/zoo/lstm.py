"""An LSTM as single steps, so that every step of every layer has its own placement."""

from __future__ import annotations

import torch
from torch import Tensor, nn

State = tuple[Tensor, Tensor]
"""Output and cell, each (batch, hidden)."""


class Cell(nn.Module):
    """One layer: all four gates come out of one matrix product (Zaremba et al., 2014)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gates = nn.Linear(inputs + hidden, 4 * hidden)

    def forward(self, x: Tensor, state: State) -> State:
        output, cell = state
        # [i f o g] = W [x h] + b, so that a step is one product and not four.
        gates = self.gates(torch.cat([x, output], 1))
        sigmoids, candidate = gates.split([3 * self.hidden, self.hidden], 1)
        # c' = f * c + i * tanh(g), h' = o * tanh(c').
        enter, keep, show = torch.sigmoid(sigmoids).chunk(3, 1)
        cell = keep * cell + enter * torch.tanh(candidate)
        return show * torch.tanh(cell), cell


def start(like: Tensor, hidden: int) -> State:
    """The state before the first step, for as many sequences as `like` has rows."""
    zeros = like.new_zeros(like.shape[0], hidden)
    return zeros, zeros


def unroll(cell: Cell, steps: list[Tensor]) -> tuple[list[Tensor], State]:
    """The outputs of every step, and the last state."""
    state, outputs = start(steps[0], cell.hidden), []
    for x in steps:
        state = cell(x, state)
        outputs.append(state[0])
    return outputs, state
