"""An LSTM one step at a time, for sequences whose next input depends on what they gave last."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Unrolled:
    """An `nn.LSTM` that reads words of a small vocabulary, without gradients.

    A step of small matrices is all overhead, hence: what the first layer makes of every word is
    computed once, the gates are sorted so that one call of the sigmoid serves three of them, and
    all results go into the same buffers.

    Args:
        lstm: of any number of layers.
        words: (v, w) embeddings of the vocabulary.
        state: hidden and cell state to begin from, each (layers, b, h); b is 1 or `k`.
        k: sequences at once.
    """

    def __init__(self, lstm: nn.LSTM, words: Tensor, state: tuple[Tensor, Tensor], k: int) -> None:
        weights = [_sorted(lstm, layer) for layer in range(lstm.num_layers)]
        self._words = F.linear(words, weights[0][0], weights[0][2])
        hidden, cell = (each.expand(-1, k, -1).contiguous() for each in state)
        self._layers = [
            _Layer(*of_layer, *of_state)
            for of_layer, of_state in zip(weights, zip(hidden, cell, strict=True), strict=True)
        ]

    def step(self, words: Tensor) -> Tensor:
        """Read words (k,); the last layer's hidden states (k, h), valid until the next step."""
        output = self._layers[0].step(self._words.index_select(0, words))
        for layer in self._layers[1:]:
            output = layer.step(layer.read(output))
        return output


class _Layer:
    """One layer, with its state; gates are enter, keep, show, candidate."""

    def __init__(
        self, inputs: Tensor, recurrent: Tensor, bias: Tensor, hidden: Tensor, cell: Tensor
    ) -> None:
        self._inputs, self._recurrent, self._bias = inputs, recurrent.t(), bias
        self._hidden, self._cell = hidden.clone(), cell.clone()
        self._gates = hidden.new_empty(len(hidden), len(recurrent))
        self._sigmoids = self._gates[:, : 3 * hidden.shape[1]]
        self._enter, self._keep, self._show, self._candidate = self._gates.chunk(4, 1)

    def read(self, inputs: Tensor) -> Tensor:
        """(k, 4h) what the gates make of inputs (k, h)."""
        return F.linear(inputs, self._inputs, self._bias)

    def step(self, read: Tensor) -> Tensor:
        """The hidden state (k, h) after what was read (k, 4h)."""
        torch.addmm(read, self._hidden, self._recurrent, out=self._gates)
        self._sigmoids.sigmoid_()
        self._candidate.tanh_()
        self._cell.mul_(self._keep).addcmul_(self._enter, self._candidate)
        return torch.mul(torch.tanh(self._cell), self._show, out=self._hidden)


def _sorted(lstm: nn.LSTM, layer: int) -> tuple[Tensor, Tensor, Tensor]:
    """Weights of inputs and of hidden states, and biases, with PyTorch's gates i, f, g, o in the
    order i, f, o, g."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    inputs, recurrent, *biases = (getattr(lstm, f"{name}_l{layer}") for name in names)
    return _swapped(inputs), _swapped(recurrent), _swapped(biases[0] + biases[1])


def _swapped(gates: Tensor) -> Tensor:
    enter, keep, candidate, show = gates.chunk(4)
    return torch.cat([enter, keep, show, candidate])
