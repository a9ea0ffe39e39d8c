"""A step is captured as it runs, whatever it would do if it were exported."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.readers.torch import capture  # noqa: E402
from situate.readers.torch.exporting import exporting_unseen  # noqa: E402


class Resizing(nn.Module):
    """Resizes what has its size already, where it is exported."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_exporting():
            x = nn.functional.interpolate(x[:, None], size=4, mode="linear")[:, 0]
        out: torch.Tensor = self.layer(x)
        return out


def test_what_is_done_for_export_alone_is_not_in_the_graph() -> None:
    graph = capture(lambda: (Resizing(), torch.ones(2, 4), None), training=False, name="m")
    assert [op.kind for op in graph.ops if op.phase == "forward" and op.flops] == ["aten.addmm"]
    assert not any("upsample" in op.kind for op in graph.ops)


def test_without_a_capture_the_answer_is_pytorchs() -> None:
    before = torch.compiler.is_exporting
    with exporting_unseen():
        assert not torch.compiler.is_exporting()
    assert torch.compiler.is_exporting is before
