"""Step by step an LSTM says what the fused one says."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.policies.arithmetic import arithmetic  # noqa: E402
from situate.policies.unrolled import Unrolled  # noqa: E402


@pytest.fixture(autouse=True)
def _quietly():
    """Threads that wait for one another cost more than these matrices."""
    with arithmetic():
        yield


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("shared", [True, False])
@torch.no_grad()
def test_steps_are_those_of_the_fused_lstm(layers, shared):
    draws = torch.Generator().manual_seed(layers)
    lstm = torch.nn.LSTM(5, 7, layers).double()
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, generator=draws)
    words = torch.randn((4, 5), generator=draws, dtype=torch.float64)
    read = torch.randint(4, (6, 3), generator=draws)
    state = tuple(
        torch.randn((layers, 1 if shared else 3, 7), generator=draws, dtype=torch.float64)
        for _ in range(2)
    )
    whole, _ = lstm(words[read], tuple(each.expand(-1, 3, -1).contiguous() for each in state))
    unrolled = Unrolled(lstm, words, state, 3)
    for step in range(6):
        torch.testing.assert_close(unrolled.step(read[step]), whole[step])
