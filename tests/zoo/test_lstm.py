"""The LSTM cell against PyTorch's own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.zoo.lstm import Cell, start, unroll  # noqa: E402


# The unrolled LSTM computes what that of PyTorch does.
def test_a_cell_is_torchs_cell():
    torch.manual_seed(0)
    theirs, ours = torch.nn.LSTMCell(3, 4), Cell(3, 4)
    order = [i + 4 * gate for gate in (0, 1, 3, 2) for i in range(4)]
    with torch.no_grad():
        ours.gates.weight.copy_(torch.cat([theirs.weight_ih, theirs.weight_hh], 1)[order])
        ours.gates.bias.copy_((theirs.bias_ih + theirs.bias_hh)[order])
    x, state = torch.randn(2, 3), (torch.randn(2, 4), torch.randn(2, 4))
    for got, expected in zip(ours(x, state), theirs(x, state), strict=True):
        torch.testing.assert_close(got, expected)


def test_unrolling_carries_the_state_on():
    torch.manual_seed(0)
    cell, steps = Cell(3, 4), [torch.randn(2, 3) for _ in range(3)]
    state = start(steps[0], 4)
    for x in steps:
        state = cell(x, state)
    outputs, last = unroll(cell, steps)
    assert len(outputs) == 3
    torch.testing.assert_close(outputs[-1], last[0])
    torch.testing.assert_close(last[1], state[1])
