"""Inputs are read in place if possible, and results belong to the caller."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402
from torch.nn import functional  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.memory import misalignment  # noqa: E402
from situate.runtime.model_state.bindings import state_values  # noqa: E402
from situate.runtime.model_state.exchange import Exchange  # noqa: E402
from situate.runtime.model_state.state import Common, shared_places  # noqa: E402
from situate.runtime.processes.step_devices import DeviceWorkers  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.step import StartDevices  # noqa: E402
from tests.runtime.models import MODELS, entropy  # noqa: E402
from tests.runtime.steps import (  # noqa: E402
    assert_same,
    cut,
    program,
    state,
    step_of,
    train,
)

Exchanged = tuple[Exchange, Common, list[torch.Tensor]]


def exchange(*, apart: bool) -> Exchanged:
    """The exchange of a training step, its common memory, and inputs for it."""
    values, (model, inputs, _) = program("towers"), MODELS["towers"]()
    placed_step = cut(values, 1)
    tensors = state_values(placed_step, model)
    layout, places = shared_places(placed_step, tensors, frozenset())
    common = Common(places, torch.zeros(layout.nbytes, dtype=torch.uint8))
    return Exchange(values, common, apart), common, list(inputs)


# Inputs: read in place or copied.
def test_a_device_of_its_own_reads_copies() -> None:
    exchanged, common, inputs = exchange(apart=True)
    assert exchanged.read(exchanged.check_inputs(tuple(inputs))) is None
    assert all(map(torch.equal, common.inputs, inputs))


def test_copies_are_aligned_as_the_callers_inputs() -> None:
    exchanged, common, inputs = exchange(apart=True)
    shifted = [torch.empty(value.numel() + k, dtype=value.dtype) for k, value in enumerate(inputs)]
    views = [
        room[k:].view(value.shape).copy_(value)
        for k, (room, value) in enumerate(zip(shifted, inputs, strict=True))
    ]
    exchanged.read(exchanged.check_inputs(tuple(views)))
    assert all(map(torch.equal, common.inputs, inputs))
    assert [x.data_ptr() % 64 for x in common.inputs] == [v.data_ptr() % 64 for v in views]
    assert exchanged.shifts == tuple(map(misalignment, views))
    assert exchanged.shifts[1]


def test_the_device_in_this_process_reads_what_the_caller_has() -> None:
    exchanged, _, inputs = exchange(apart=False)
    step_inputs = exchanged.read(exchanged.check_inputs(tuple(inputs)))
    assert step_inputs is not None
    assert [a.data_ptr() for a in step_inputs] == [b.data_ptr() for b in inputs]


def test_an_input_with_another_layout_is_copied() -> None:
    exchanged, common, (x, *rest) = exchange(apart=False)
    other = x.t().contiguous().t()
    step_inputs = exchanged.read(exchanged.check_inputs((other, *rest)))
    assert step_inputs is not None
    assert step_inputs[0] is common.inputs[0]
    assert torch.equal(step_inputs[0], x)


def test_other_inputs_than_were_captured_are_refused() -> None:
    exchanged, _, (x, *rest) = exchange(apart=False)
    with pytest.raises(SituateError, match=r"input 0 is float64 .*, the step was captured with"):
        exchanged.check_inputs((x.double(), *rest))
    with pytest.raises(SituateError, match="give such batches, or capture and plan for this one"):
        exchanged.check_inputs((x[:1], *rest))


# Results and overwritten inputs.
@pytest.mark.parametrize("apart", [True, False])
def test_a_result_stays_when_the_next_step_writes(apart: bool) -> None:
    exchanged, common, _ = exchange(apart=apart)
    buffers = exchanged.result_buffers()
    (common.results if buffers is None else buffers)[0].fill_(1.0)
    loss = exchanged.restore_results(buffers)
    following = exchanged.result_buffers()
    (common.results if following is None else following)[0].fill_(2.0)
    assert loss.item() == 1.0


def buffers(model: Any, x: Tensor, y: Tensor) -> Tensor:
    x.mul_(1.5)
    x[0] = x[1]
    y.add_(1).remainder_(3)
    return entropy(model, x, y)


def rectified(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return entropy(model, functional.relu_(x), y)


def filled(model: Any, x: Tensor, y: Tensor) -> Tensor:
    loss = entropy(model, x * 2, y)
    torch.add(x, y[:, None], out=x)
    return loss


@pytest.mark.parametrize(
    ("loss", "devices", "start"),
    [(buffers, 1, None), (rectified, 1, None), (filled, 1, None), (buffers, 2, DeviceWorkers)],
)
def test_overwritten_inputs_are_written_back(
    loss: Any, devices: int, start: StartDevices | None
) -> None:
    model, (x, y), _ = MODELS["wide"]()
    copied, others = copy.deepcopy(model), (x.clone(), y.clone())
    values = capture_program(model, (x, y), loss)
    sgd, copied_sgd = (torch.optim.SGD(tensor.parameters(), lr=0.1) for tensor in (model, copied))
    with step_of(values, model, sgd, devices, start) as step:
        for number in (1, 2, 3):
            expected = train(copied, others, loss, copied_sgd, number)
            assert torch.equal(step(x, y), expected)
            assert_same({"x": x, "y": y}, dict(zip("xy", others, strict=True)))
    assert_same(state(model), state(copied))


def test_a_step_that_fails_writes_no_input() -> None:
    model, (x, y), _ = MODELS["wide"]()
    values = capture_program(model, (x, y), rectified)
    before = x.clone()
    with step_of(values, model, torch.optim.SGD(model.parameters()), 1) as step:
        with pytest.raises(SituateError, match="out of bounds"):
            step(x, y + 7)
        assert torch.equal(x, before)


def test_inputs_that_are_written_lie_alone() -> None:
    model, (x, y), _ = MODELS["wide"]()
    model.register_buffer("kept", torch.zeros_like(x))
    used = capture_program(model, (x, y), lambda m, x, y: buffers(m, x, y) + m.kept.sum())
    with step_of(used, model, torch.optim.SGD(model.parameters()), 1) as step:
        with pytest.raises(SituateError, match=r"input 0, .* shares memory with the model: clone"):
            step(model.kept, y)
        with pytest.raises(SituateError, match=r"input 0 is expanded, .*: clone it"):
            step(x[:1].expand(x.shape), y)
    pair = capture_program(model, (x, x.clone()), lambda m, x, z: m(x.add_(z)).sum())
    with step_of(pair, model, torch.optim.SGD(model.parameters()), 1) as step:
        step(x, x.clone())
        with pytest.raises(
            SituateError, match=r"input 0, .*, shares memory with input 1: clone it"
        ):
            step(x, x)
