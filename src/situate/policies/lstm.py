"""An LSTM whose recurrence is the core's, with its gradient.

PyTorch's own takes twice as long to read the recurrent weights, most of what a step costs, and the
activations of samples that were drawn step by step would have to be computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from situate import _core
from situate.policies.arithmetic import product
from situate.policies.core import called

State = tuple[Tensor, Tensor]
"""Hidden states and cells."""


class Activations(NamedTuple):
    """Activations of a layer in T steps of k sequences.

    Attributes:
        gates: (T, k, 4h) in PyTorch's order, after their nonlinearities.
        cells: (T, k, h).
        hidden: (T, k, h).
    """

    gates: Tensor
    cells: Tensor
    hidden: Tensor


def bias(lstm: nn.LSTM, layer: int) -> Tensor:
    """(4h,) both biases of a layer."""
    of_inputs, of_hidden = (getattr(lstm, f"bias_{of}_l{layer}") for of in ("ih", "hh"))
    return torch.as_tensor(of_inputs + of_hidden)


def read(lstm: nn.LSTM, layer: int, inputs: Tensor) -> Tensor:
    """(..., 4h) what a layer's gates make of inputs (..., f)."""
    weights = getattr(lstm, f"weight_ih_l{layer}")
    # (..., f) to (rows, f) to (rows, 4h): the inputs of all steps in one product, since only the
    # recurrent product has to go step by step.
    made = product(inputs.reshape(-1, inputs.shape[-1]), weights.t())
    return (made + bias(lstm, layer)).view(*inputs.shape[:-1], len(weights))


def run(
    lstm: nn.LSTM, first: Tensor, state: State, activations: Sequence[Activations] = ()
) -> tuple[Tensor, State]:
    """Hidden states (T, k, h) of the last layer, and the state after the last step.

    Args:
        lstm: of any number of layers, whose parameters alone are used.
        first: (T, k, 4h) what the first layer read, see `read`.
        state: to begin from, each (layers, k, h).
        activations: of every layer, if the same steps were taken before with the same parameters.
    """
    inputs, hidden, cells = first, list[Tensor](), list[Tensor]()
    for layer in range(lstm.num_layers):
        if layer:
            inputs = read(lstm, layer, inputs)
        recurrent = getattr(lstm, f"weight_hh_l{layer}")
        known = activations[layer] if activations else None
        inputs, cell = _Pass.apply(  # type: ignore[no-untyped-call]
            inputs, recurrent, state[0][layer], state[1][layer], known
        )
        hidden.append(inputs[-1])
        cells.append(cell)
    return inputs, (torch.stack(hidden), torch.stack(cells))


class _Pass(torch.autograd.Function):
    """One layer: its hidden states (T, k, h) and the last cell (k, h)."""

    @staticmethod
    def forward(
        ctx: Any,
        read: Tensor,
        recurrent: Tensor,
        hidden: Tensor,
        cell: Tensor,
        known: Activations | None,
    ) -> State:
        activations = known or Activations(
            *called(_core.nn.lstm_forward, recurrent, read, hidden, cell)
        )
        ctx.save_for_backward(recurrent, hidden, cell, *activations)
        # A copy, lest an output be a view of what is saved for the backward pass.
        return activations.hidden, activations.cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        recurrent, hidden, cell, gates, cells, states = ctx.saved_tensors
        of_read, of_hidden, of_cell = called(
            _core.nn.lstm_backward, recurrent, cell, gates, cells, *gradients
        )
        # before (T, k, h): the hidden state that each step read, the first one included.
        before = torch.cat([hidden.unsqueeze(0), states[:-1]])
        # The gradient of the recurrent weights sums over steps and sequences: (4h, T k) x (T k, h).
        of_recurrent = product(of_read.flatten(0, 1).t(), before.flatten(0, 1))
        return of_read, of_recurrent, of_hidden, of_cell, None
