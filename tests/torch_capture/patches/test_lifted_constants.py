"""Tensors that a model keeps as plain attributes are captured, whatever is done with them first."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.torch_capture import capture  # noqa: E402


class Turning(nn.Module):
    """Turns by angles that are no buffer, brought to the device and type of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.angles = torch.polar(torch.ones(6, 2), torch.arange(12.0).view(6, 2))
        self.scale = torch.full((4,), 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(self.layer(x).view(-1, 2, 2))
        turned = torch.view_as_real(pairs * self.angles.to(x.device)).flatten(1)
        return turned * self.scale.to(x.dtype).cpu()


@pytest.mark.parametrize("training", [True, False])
def test_plain_attributes_may_be_brought_to_where_they_are(training: bool) -> None:
    loss = (lambda model, x: model(x).sum()) if training else None
    graph = capture(lambda: (Turning(), torch.ones(6, 4), loss), training=training, name="turning")
    assert sum(op.persistent for op in graph.ops if op.kind != "parameter") >= 112
