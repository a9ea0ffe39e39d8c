"""The caller's tensors are the devices' memory, even after the caller replaces them."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.model_state.bindings import state_values, type_and_shape  # noqa: E402
from situate.runtime.model_state.optimizers import default_optimizer  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from tests.runtime.models import MODELS, entropy  # noqa: E402
from tests.runtime.pairs import Pair  # noqa: E402
from tests.runtime.steps import cut, program, step_of  # noqa: E402


def towers(optimizer: type = torch.optim.Adam) -> PlacedStep:
    model, *_ = MODELS["towers"]()
    instance = optimizer(model.parameters(), lr=0.1)
    return step_of(program("towers", optimizer.__name__.lower()), model, instance, 1)


# Memory of parameters, shared or not.
def test_parameters_lie_in_the_devices_memory() -> None:
    step = towers()
    with torch.no_grad():
        for parameter in step.model.parameters():
            parameter.fill_(0.25)
    assert {float(v) for entry in step._common.state for v in entry.value.flatten()} == {0.25}


class Sharing(torch.nn.Module):
    """Two layers whose weights are two parameters in one memory, the second from `row` on."""

    def __init__(self, row: int = 0) -> None:
        super().__init__()
        self.a, self.b = (torch.nn.Linear(4, 4, bias=False) for _ in range(2))
        memory = torch.zeros(8, 4)
        self.a.weight.data, self.b.weight.data = memory[:4], memory[row : row + 4]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.b(torch.tanh(self.a(x)))
        return result


def of_sharing(row: int, training: bool) -> PlacedStep:
    model, x = Sharing(row), torch.randn(3, 4)
    loss = (lambda model, x: model(x).square().mean()) if training else None
    captured = capture_program(model, (x,), loss, training=training)
    instance = torch.optim.SGD(model.parameters(), lr=0.1) if training else None
    return step_of(captured, model, instance, 1)


@pytest.mark.parametrize("row", [0, 3])
def test_memory_that_two_parameters_share_is_refused_where_it_changes(row: int) -> None:
    """PyTorch would update it twice, and the step each parameter by itself."""
    with pytest.raises(SituateError, match=r"'a.weight' and 'b.weight' share memory"):
        of_sharing(row, training=True)


def test_memory_that_nothing_changes_may_be_shared() -> None:
    of_sharing(0, training=False).close()


def test_parameters_side_by_side_share_no_memory() -> None:
    of_sharing(4, training=True).close()


def test_a_model_on_another_device_is_refused() -> None:
    model, *_ = MODELS["towers"]()
    model.right.to("meta")
    with pytest.raises(SituateError, match=r"'right.\w+' is on meta: move the model to the CPU"):
        step_of(
            program("towers", "adam"), model, default_optimizer("adam", [*model.parameters()]), 1
        )


# Changes by the caller: tensors, optimiser state, loaded state.
def test_data_put_in_place_of_a_parameter_is_taken_over() -> None:
    step, (_, inputs, _) = towers(torch.optim.SGD), MODELS["towers"]()
    parameters = dict(step.model.named_parameters())
    for parameter in parameters.values():
        parameter.data = torch.zeros(parameter.shape)
    assert float(step(*inputs)) == pytest.approx(math.log(3.0))
    assert float(parameters["head.bias"].detach().abs().sum()) > 0


def test_a_new_optimizer_state_is_taken_over() -> None:
    step, (_, inputs, _) = towers(), MODELS["towers"]()
    step(*inputs)
    for optimizer_state in step.optimizer.state.values():
        assert optimizer_state["step"] == 1
        optimizer_state["step"] = torch.tensor(7.0)
        optimizer_state["exp_avg"] = torch.full_like(optimizer_state["exp_avg"], 3.0)
    step(*inputs)
    assert {
        float(optimizer_state["step"]) for optimizer_state in step.optimizer.state.values()
    } == {8.0}
    assert all(
        float(optimizer_state["exp_avg"].min()) > 2.0
        for optimizer_state in step.optimizer.state.values()
    )


@pytest.mark.parametrize("shape", [(7, 7), (1,), ()])
def test_the_optimizers_state_must_have_the_parameters_shape(shape: tuple[int, ...]) -> None:
    step, (_, inputs, _) = towers(), MODELS["towers"]()
    step.optimizer.state[step.model.head.weight]["exp_avg"] = torch.zeros(shape)
    with pytest.raises(SituateError, match=r"'head.weight': the optimizer's 'exp_avg' has shape"):
        step(*inputs)


def cleared(optimizer: Any) -> None:
    optimizer.state.clear()


def loaded_anew(optimizer: Any) -> None:
    fresh = copy.deepcopy(optimizer)
    fresh.state.clear()
    optimizer.load_state_dict(fresh.state_dict())


@pytest.mark.parametrize("name", ["momentum", "adam"])
@pytest.mark.parametrize("forget", [cleared, loaded_anew])
def test_an_optimizer_that_forgets_starts_anew(name: str, forget: Callable[[Any], None]) -> None:
    pair = Pair("towers", functools.partial(default_optimizer, name))
    with pair.placed(1, None) as step:
        pair.both(step)
        forget(pair.optimizer)
        forget(pair.copied)
        pair.both(step)
    pair.assert_same()


def test_an_optimizer_that_forgets_one_parameter_starts_anew_there() -> None:
    pair = Pair("towers", functools.partial(default_optimizer, "adam"))
    with pair.placed(1, None) as step:
        pair.both(step)
        for model, optimizer in ((pair.model, pair.optimizer), (pair.copy, pair.copied)):
            del optimizer.state[model.head.weight]
        pair.both(step)
    pair.assert_same()


def recounted(optimizer: Any) -> None:
    for optimizer_state in optimizer.state.values():
        optimizer_state["step"].fill_(50.0)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("change", [cleared, loaded_anew, recounted])
def test_a_device_with_memory_of_its_own_takes_over_what_was_changed_and_no_more(
    change: Callable[[Any], None], keep: bool
) -> None:
    pair = Pair("towers", functools.partial(default_optimizer, "adam"))
    placed_step, apart = cut(pair.program, 1), [RealDevice("apart", "cpu", 1, mirrored=True)]
    with PlacedStep(placed_step, pair.model, pair.optimizer, apart, keep=keep) as step:
        pair.both(step)
        change(pair.optimizer)
        change(pair.copied)
        pair.both(step)
        step.sync()
        pair.assert_same()


@pytest.mark.parametrize("number", [float, torch.tensor])
def test_a_saved_state_is_loaded_whatever_its_count_is(number: Callable[[float], Any]) -> None:
    pair = Pair("towers", functools.partial(default_optimizer, "adam"))
    with pair.placed(1, None) as step:
        pair.both(step)
        saved = copy.deepcopy(pair.optimizer.state_dict())
        pair.optimizer.state.clear()
        pair.optimizer.load_state_dict(saved)
        for optimizer_state in pair.optimizer.state.values():
            optimizer_state["step"] = number(float(optimizer_state["step"]))
        pair.both(step)
    pair.assert_same()


# Changes that a step cannot follow.
def test_a_parameter_of_another_type_is_refused() -> None:
    step, (_, inputs, _) = towers(), MODELS["towers"]()
    step.model.double()
    with pytest.raises(SituateError, match=r"' is float64 .* float32 .*captured: capture and plan"):
        step(*inputs)


def test_a_parameter_that_was_replaced_is_refused() -> None:
    step, (_, inputs, _) = towers(), MODELS["towers"]()
    saved = {name: value.clone() for name, value in step.model.state_dict().items()}
    step.model.load_state_dict(saved, assign=True)
    with pytest.raises(SituateError, match=r"'.*' was replaced since .*: change it in place, or"):
        step(*inputs)


def test_an_optimizer_can_be_asked_for_zero_gradients() -> None:
    step, (_, inputs, _) = towers(), MODELS["towers"]()
    step(*inputs)
    step.optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in step.model.parameters())


# Tensors outside parameters and buffers, and changed models.
def test_tensors_made_inside_the_model_are_held_too() -> None:
    program_of_two = cut(program("odd", "adamw"), 2)
    model, *_ = MODELS["odd"]()
    values = dict(
        zip(
            program_of_two.names.state,
            state_values(program_of_two, model),
            strict=True,
        )
    )
    assert values["shift"] is model.shift
    assert values["lifted_tensor_0"] == 1.0


def test_a_tensor_of_the_losss_own_is_a_constant() -> None:
    model, (x, labels), _ = MODELS["towers"]()
    captured = capture_program(model, (x,), lambda model, x: entropy(model, x, labels))
    step = step_of(captured, model, torch.optim.SGD(model.parameters(), lr=0.1), 1)
    expected = entropy(model, x, labels)
    assert torch.equal(step(x), expected)


def test_a_tensor_is_described_by_its_type_and_shape() -> None:
    assert type_and_shape(torch.zeros(2, 3, dtype=torch.int64)) == "int64 (2, 3)"


def test_an_optimizer_that_leaves_a_parameter_out_is_refused() -> None:
    model, *_ = MODELS["towers"]()
    tensor = torch.optim.SGD([model.left.weight], lr=0.1)
    with pytest.raises(SituateError, match=r"leaves out parameter 'left.bias', .*: freeze it"):
        step_of(program("towers"), model, tensor, 1)


def test_a_model_that_was_changed_since_is_refused() -> None:
    model, *_ = MODELS["towers"]()
    model.left = torch.nn.Linear(7, 5)
    with pytest.raises(SituateError, match=r"'left.weight' is float32 \(5, 7\).*\(5, 6\) .*again"):
        step_of(program("towers"), model, torch.optim.SGD(model.parameters(), lr=0.1), 1)
    model.left = torch.nn.Identity()
    with pytest.raises(SituateError, match=r"no tensor 'left\.(weight|bias)'"):
        step_of(program("towers"), model, torch.optim.SGD(model.parameters(), lr=0.1), 1)
