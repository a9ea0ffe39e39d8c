"""An LSTM whose recurrence runs in the core, with its gradient.

PyTorch's LSTM takes twice as long to read the recurrent weights, which dominate the cost of a step.
It would also have to recompute the activations of samples that were drawn step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from situate import _core
from situate.policies.arithmetic import call_core, product

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


class Layers(Protocol):
    """An LSTM whose parameters have PyTorch's names, such as `weight_ih_l0`."""

    num_layers: int
    hidden_size: int


def joint_bias(lstm: Layers, layer: int) -> Tensor:
    """(4h,) the sum of a layer's two biases."""
    of_inputs, of_hidden = (getattr(lstm, f"bias_{of}_l{layer}") for of in ("ih", "hh"))
    return torch.as_tensor(of_inputs + of_hidden)


def input_gates(lstm: Layers, layer: int, inputs: Tensor) -> Tensor:
    """(..., 4h) the part of a layer's gates that depends on its inputs (..., f)."""
    weights = getattr(lstm, f"weight_ih_l{layer}")
    # (..., f) to (rows, f) to (rows, 4h): the inputs of all steps in one product, since only the
    # recurrent product has to go step by step.
    gates = product(inputs.reshape(-1, inputs.shape[-1]), weights.t())
    return (gates + joint_bias(lstm, layer)).view(*inputs.shape[:-1], len(weights))


def run_lstm(
    lstm: Layers, first: Tensor, state: State, activations: Sequence[Activations] = ()
) -> tuple[Tensor, State]:
    """Hidden states (T, k, h) of the last layer, and the state after the last step.

    Args:
        lstm: of any number of layers; only its parameters are used.
        first: (T, k, 4h) `input_gates` of the first layer.
        state: initial hidden states and cells, each (layers, k, h).
        activations: of every layer, if the same steps ran before with the same parameters.
    """
    inputs, hidden, cells = first, list[Tensor](), list[Tensor]()
    for layer in range(lstm.num_layers):
        if layer:
            inputs = input_gates(lstm, layer, inputs)
        recurrent = getattr(lstm, f"weight_hh_l{layer}")
        saved_activations = activations[layer] if activations else None
        inputs, cell = _LayerPass.apply(  # type: ignore[no-untyped-call]
            inputs, recurrent, state[0][layer], state[1][layer], saved_activations
        )
        hidden.append(inputs[-1])
        cells.append(cell)
    return inputs, (torch.stack(hidden), torch.stack(cells))


class _LayerPass(torch.autograd.Function):
    """One layer: its hidden states (T, k, h) and the last cell (k, h)."""

    @staticmethod
    def forward(
        ctx: Any,
        gate_inputs: Tensor,
        recurrent: Tensor,
        hidden: Tensor,
        cell: Tensor,
        saved_activations: Activations | None,
    ) -> State:
        activations = saved_activations or Activations(
            *call_core(_core.nn.lstm_forward, recurrent, gate_inputs, hidden, cell)
        )
        ctx.save_for_backward(recurrent, hidden, cell, *activations)
        # A copy, so that no output is a view of a tensor saved for the backward pass.
        return activations.hidden, activations.cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        recurrent, hidden, cell, gates, cells, states = ctx.saved_tensors
        of_read, of_hidden, of_cell = call_core(
            _core.nn.lstm_backward, recurrent, cell, gates, cells, *gradients
        )
        # before (T, k, h): the hidden state that each step read, the first one included.
        before = torch.cat([hidden.unsqueeze(0), states[:-1]])
        # The gradient of the recurrent weights sums over steps and sequences: (4h, T k) x (T k, h).
        of_recurrent = product(of_read.flatten(0, 1).t(), before.flatten(0, 1))
        return of_read, of_recurrent, of_hidden, of_cell, None
