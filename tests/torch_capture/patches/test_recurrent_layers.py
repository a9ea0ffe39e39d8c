"""Recurrent layers are traced whole, with what is between them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.torch_capture import capture  # noqa: E402


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_there_is_dropout_between_recurrent_layers(kind: type[nn.Module]) -> None:
    def build() -> Any:
        layers = kind(3, 3, 3, dropout=0.5)
        return layers, (torch.ones(5, 2, 3),), lambda model, x: model(x)[0].mean()

    forward = [op.kind for op in capture(build, name="m").ops if op.phase == "forward"]
    assert sum("bernoulli" in kind or kind == "aten.native_dropout" for kind in forward) == 2
