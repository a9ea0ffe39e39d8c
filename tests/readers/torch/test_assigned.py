"""A buffer that is assigned is written in the end."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.readers.torch.assigned import Assigned, AssignedBuffers  # noqa: E402


class Mean(nn.Module):
    """Keeps a moving average by assigning it."""

    mean: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> None:
        self.count.add_(1)
        self.mean = self.mean / 2 + x / 2


def call(model: nn.Module, buffers: AssignedBuffers, x: float) -> None:
    with buffers.written():
        model[0](torch.tensor(x))  # type: ignore[index]


def test_a_first_call_tells_that_there_are_assignments_and_changes_no_assigned_buffer() -> None:
    model = nn.Sequential(Mean())
    mean = model[0].mean
    with pytest.raises(Assigned):
        call(model, AssignedBuffers(model), 8.0)
    assert model[0].mean is mean
    assert mean == 0


def test_then_what_was_assigned_is_written_into_the_buffer() -> None:
    model = nn.Sequential(Mean())
    buffers, mean, count = AssignedBuffers(model), model[0].mean, model[0].count
    with pytest.raises(Assigned):
        call(model, buffers, 8.0)
    for x in (8.0, 4.0):
        call(model, buffers, x)
    assert model[0].mean is mean
    assert mean == 4.0
    assert model[0].count is count
    assert count == 3


def test_an_error_leaves_the_buffers_in_their_places() -> None:
    model = nn.Sequential(Mean())
    mean = model[0].mean
    with pytest.raises(RuntimeError):
        call(model, AssignedBuffers(model), None)  # type: ignore[arg-type]
    assert model[0].mean is mean


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(2), r"a tensor of float32 and shape \(2,\) in the place of buffer 'mean'"),
        (torch.zeros((), dtype=torch.float64), r"tensor of float64 .* is a tensor of float32"),
        (None, "puts None in the place of buffer 'mean'"),
    ],
)
def test_what_is_assigned_is_like_the_buffer(value: Tensor | None, message: str) -> None:
    """The next step would be another one."""
    model = Mean()
    buffers, mean = AssignedBuffers(model), model.mean
    for error, text in ((Assigned, None), (SituateError, message)):
        with pytest.raises(error, match=text), buffers.written():
            model._buffers["mean"] = value
        assert model.mean is mean
