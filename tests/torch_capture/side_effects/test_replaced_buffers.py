"""A buffer that is assigned is written in the end."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture.side_effects.replaced_buffers import Assigned, AssignedBuffers  # noqa: E402


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
    with buffers.write_back():
        model[0](torch.tensor(x))  # type: ignore[index]


# A first call finds the assigned buffers, and later calls write the new tensor into them.
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
        with pytest.raises(error, match=text), buffers.write_back():
            model._buffers["mean"] = value
        assert model.mean is mean


class Copies(TorchDispatchMode):
    """Records the tensors that are copied into."""

    def __init__(self) -> None:
        super().__init__()
        self.into: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.copy_.default:
            self.into.append(args[0].data_ptr())
        return func(*args, **(kwargs or {}))


def test_buffers_are_written_in_the_models_order() -> None:
    """A graph captured from them is the same in every process: sets of names differ in order."""
    model = nn.Sequential(*(Mean() for _ in range(8)))
    buffers = AssignedBuffers(model)
    for raised in (True, False):
        with pytest.raises(Assigned) if raised else Copies() as copies, buffers.write_back():
            for mean in reversed(model):
                mean(torch.tensor(1.0))
    assert copies.into == [mean.mean.data_ptr() for mean in model]
