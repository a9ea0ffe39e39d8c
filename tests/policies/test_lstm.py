"""The core's recurrence matches PyTorch's LSTM, with its gradient."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.policies.arithmetic import arithmetic  # noqa: E402
from situate.policies.lstm import Activations, input_gates, run_lstm  # noqa: E402


@pytest.fixture(autouse=True)
def _quietly():
    """Threads that wait for one another cost more than these matrices."""
    with arithmetic():
        yield


STEPS, FEATURES = 6, 5
CLOSE = {torch.float64: {}, torch.float32: {"rtol": 1e-4, "atol": 1e-5}}


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def case(layers, hidden, k, dtype=torch.float64):
    """An LSTM, inputs and a state to begin from."""
    draw = draws(layers)
    lstm = torch.nn.LSTM(FEATURES, hidden, layers).to(dtype)
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=draw)
    inputs = torch.randn((STEPS, k, FEATURES), generator=draw).to(dtype).requires_grad_()
    state = tuple(
        torch.randn((layers, k, hidden), generator=draw).to(dtype).requires_grad_()
        for _ in range(2)
    )
    return lstm, inputs, state


def ours(lstm, inputs, state, activations=()):
    return run_lstm(lstm, input_gates(lstm, 0, inputs), state, activations)


def gradients(outputs_and_state, lstm, inputs, state):
    """Gradients of a weighted sum of outputs and state."""
    outputs, (hidden, cell) = outputs_and_state
    draw = draws(9)
    total = sum(
        (tensor * torch.randn(tensor.shape, generator=draw).to(tensor)).sum()
        for tensor in (outputs, hidden, cell)
    )
    return torch.autograd.grad(total, [*lstm.parameters(), inputs, *state])


# Against PyTorch, and with activations of an earlier run.
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("k", [1, 3, 4, 7])
@pytest.mark.parametrize("hidden", [1, 7, 8, 40])
@pytest.mark.parametrize("layers", [1, 2])
def test_states_and_gradients_are_those_of_pytorchs_lstm(layers, hidden, k, dtype):
    inputs_given = case(layers, hidden, k, dtype)
    gradients_found, expected = (
        ours(*inputs_given),
        inputs_given[0](inputs_given[1], inputs_given[2]),
    )
    torch.testing.assert_close(gradients_found, expected, **CLOSE[dtype])
    torch.testing.assert_close(
        gradients(gradients_found, *inputs_given),
        gradients(expected, *inputs_given),
        **CLOSE[dtype],
    )


def test_steps_that_were_taken_before_are_not_taken_again():
    lstm, inputs, state = case(1, 3, 2)
    expected, activations_kept = (
        ours(lstm, inputs, state),
        Activations(*torch.full((3, STEPS, 2, 3), 0.5).double()),
    )
    activations_kept = activations_kept._replace(gates=torch.full((STEPS, 2, 12), 0.5).double())
    again, _ = ours(lstm, inputs, state, [activations_kept])
    assert torch.equal(again, activations_kept.hidden)
    assert not torch.equal(again, expected[0])


def test_large_inputs_saturate_without_overflow():
    lstm, inputs, state = case(1, 4, 1, torch.float32)
    outputs, _ = ours(lstm, inputs * 1e6, state)
    assert outputs.isfinite().all()
    torch.testing.assert_close(outputs, lstm(inputs * 1e6, state)[0], **CLOSE[torch.float32])
