"""A placed step equals the unplaced one, to the last bit."""

from __future__ import annotations

import contextlib
import copy
import gc
import signal
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.processes.step_devices import LocalDevice  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.programs.seeds import kept_generator, seeded_draws  # noqa: E402
from situate.runtime.step import PlacedStep, StartDevices  # noqa: E402
from tests.runtime.models import MODELS, Structured, entropy  # noqa: E402
from tests.runtime.pairs import Pair  # noqa: E402
from tests.runtime.steps import (  # noqa: E402
    DEVICES,
    STEPS,
    MakeOptimizer,
    assert_same,
    optimizer_snapshot,
    state,
    step_of,
    train,
)

SGD, Adam, AdamW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW


def two_groups(parameters: Any) -> torch.optim.Optimizer:
    """The second with another rate, and weight decay."""
    first, *others = parameters
    groups = [{"params": [first]}, {"params": others, "lr": 0.03, "weight_decay": 0.2}]
    return AdamW(groups, lr=0.01)


OPTIMIZERS: dict[str, MakeOptimizer] = {
    "sgd": lambda parameters: SGD(parameters, lr=0.1),
    "sgd, weight decay": lambda parameters: SGD(parameters, lr=0.1, weight_decay=0.1),
    "sgd, maximize": lambda parameters: SGD(parameters, lr=0.1, maximize=True),
    "momentum": lambda parameters: SGD(parameters, lr=0.1, momentum=0.8, weight_decay=0.1),
    "nesterov": lambda parameters: SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda parameters: Adam(parameters, lr=0.01, betas=(0.8, 0.95), eps=1e-6),
    "adam, weight decay": lambda parameters: Adam(parameters, lr=0.01, weight_decay=0.1),
    "adamw": lambda parameters: AdamW(parameters, lr=0.01, weight_decay=0.3),
    "two groups": two_groups,
}

CASES = [
    *(("towers", how) for how in OPTIMIZERS),
    *(("convolutional", how) for how in ("momentum", "adam")),
    *(("tied", how) for how in ("sgd", "adamw")),
    ("unrolled", "adam"),
    ("gated", "sgd"),
    *(("odd", how) for how in ("nesterov", "adamw")),
    ("strided", "adam"),
    ("wide", "adamw"),
    ("relative", "momentum"),
    ("following", "sgd"),
    ("turned", "sgd"),
    ("double", "adam"),
    ("brief", "momentum"),
]


# Equal numbers on every model and placement.
@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize(("name", "how"), CASES)
def test_three_steps_are_equal_to_the_last_bit(
    processes: StartDevices, name: str, how: str, devices: int
) -> None:
    pair = Pair(name, OPTIMIZERS[how])
    before = state(pair.model)
    start = processes if devices > 1 else None
    with pair.placed(devices, start, seed=devices) as step:
        pair.both(step)
    pair.assert_same()
    assert any(not torch.equal(value, before[k]) for k, value in state(pair.model).items())


# Training over many steps: schedules, saved state, eager steps in between.
def test_rates_may_change_between_steps(processes: StartDevices) -> None:
    pair = Pair("towers", OPTIMIZERS["two groups"])
    with pair.placed(2, processes) as step:
        for factor in (1.0, 0.1, 0.5):
            for optimizer in (pair.optimizer, pair.copied):
                for group in optimizer.param_groups:
                    group["lr"] *= factor
                    group["weight_decay"] *= factor
            pair.both(step, steps=1)
    pair.assert_same()


@pytest.mark.filterwarnings("error")
def test_a_schedule_of_pytorch_changes_the_rate() -> None:
    pair = Pair("towers", OPTIMIZERS["momentum"])
    both = pair.optimizer, pair.copied
    schedules = [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.3) for optimizer in both]
    with pair.placed(1, None) as step:
        for _ in range(STEPS):
            pair.both(step, steps=1)
            for schedule in schedules:
                schedule.step()
    pair.assert_same()


def test_training_goes_on_from_eager_training_and_back(processes: StartDevices) -> None:
    pair = Pair("odd", OPTIMIZERS["adamw"])
    for model, optimizer in ((pair.model, pair.optimizer), (pair.copy, pair.copied)):
        train(model, pair.inputs, pair.loss, optimizer, 0)
    with pair.placed(2, processes) as step:
        pair.both(step)
    for model, optimizer in ((pair.model, pair.optimizer), (pair.copy, pair.copied)):
        train(model, pair.inputs, pair.loss, optimizer, 0)
    pair.assert_same()


@pytest.mark.parametrize("how", ["sgd", "momentum", "adam", "adamw"])
def test_training_goes_on_from_a_saved_state(tmp_path: Path, how: str) -> None:
    pair = Pair("odd", OPTIMIZERS[how])
    with pair.placed(1, None) as step:
        pair.both(step, steps=2)
        saved = {"model": pair.model.state_dict(), "optimizer": pair.optimizer.state_dict()}
        torch.save(saved, tmp_path / "saved.pt")
        later = [
            step(*pair.inputs),
            state(pair.model),
            optimizer_snapshot(pair.model, pair.optimizer),
        ]
        loaded = torch.load(tmp_path / "saved.pt", weights_only=True)
        pair.model.load_state_dict(loaded["model"])
        pair.optimizer.load_state_dict(loaded["optimizer"])
        pair.both(step, steps=1)
    pair.assert_same()
    assert_same(later[1], state(pair.model))
    assert_same(later[2], optimizer_snapshot(pair.model, pair.optimizer))


def test_another_model_can_go_on_with_what_was_saved(processes: StartDevices) -> None:
    pair, other = (Pair("towers", OPTIMIZERS["adam"]) for _ in range(2))
    with pair.placed(2, processes) as step:
        pair.both(step, steps=2)
        other.model.load_state_dict(pair.model.state_dict())
        other.optimizer.load_state_dict(pair.optimizer.state_dict())
        with other.placed(1, None) as on:
            assert torch.equal(on(*pair.inputs), step(*pair.inputs))
    assert_same(state(pair.model), state(other.model))
    assert_same(
        optimizer_snapshot(pair.model, pair.optimizer),
        optimizer_snapshot(other.model, other.optimizer),
    )


def test_a_step_that_trains_and_one_that_infers_share_a_model(processes: StartDevices) -> None:
    pair = Pair("convolutional", OPTIMIZERS["momentum"])
    infers = capture_program(pair.model, pair.inputs[:1], None, training=False)
    with pair.placed(2, processes) as step, step_of(infers, pair.model, None, 1) as infer:
        for _ in range(2):
            pair.both(step, steps=1)
            with torch.no_grad():
                expected = pair.copy.eval()(pair.inputs[0])
            pair.copy.train()
            assert torch.equal(infer(pair.inputs[0]), expected)
    pair.assert_same()


# Inputs and results of every kind.
@pytest.mark.parametrize("devices", [1, 3])
def test_a_model_returns_what_it_does(processes: StartDevices, devices: int) -> None:
    torch.manual_seed(0)
    model, inputs = Structured().eval(), {"x": torch.randn(4, 3), "scale": torch.tensor(3.0)}
    result = capture_program(model, inputs, None, training=False)
    with step_of(result, model, None, devices, processes if devices > 1 else None) as step:
        ours, theirs = step(inputs), model(**inputs)
        again = step({**inputs, "scale": torch.tensor(5.0)})
    assert (ours["count"], ours["nothing"]) == (3, None)
    for one, other in zip(ours["pair"], theirs["pair"], strict=True):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()
        assert not one.requires_grad
    assert torch.equal(again["pair"][0], theirs["pair"][1].t() * 5.0)
    assert torch.equal(ours["pair"][0], theirs["pair"][0])


class OfBatch(nn.Module):
    """Takes one argument, a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        out: torch.Tensor = self.layer(batch["x"]) * batch["mask"]
        return out


def of_batch(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """A loss of a batch alone."""
    return model(batch).square().sum()


@pytest.mark.parametrize("training", [True, False])
def test_the_only_argument_may_be_a_dict(training: bool) -> None:
    model, batch = OfBatch().eval(), {"x": torch.randn(4, 3), "mask": torch.ones(4, 1)}
    loss = of_batch if training else None
    result = capture_program(model, (batch,), loss, training=training)
    expected = (of_batch(model, batch) if training else model(batch)).detach()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if training else None
    with step_of(result, model, optimizer, 1) as step:
        assert torch.equal(step(batch), expected)


def test_inputs_that_were_captured_by_name_may_be_given_by_name() -> None:
    torch.manual_seed(0)
    model, batch = nn.Linear(3, 2), {"x": torch.randn(4, 3), "y": torch.randn(4, 2)}

    def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (model(x) - y).square().mean()

    captured = capture_program(model, batch, loss)
    with step_of(captured, model, SGD(model.parameters(), lr=0.0), 1) as step:
        expected = loss(model, **batch)
        assert step(**batch) == step(batch) == step(y=batch["y"], x=batch["x"]) == expected
        with pytest.raises(SituateError, match="not structured like"):
            step(batch["x"], y=batch["y"])


def test_an_input_may_have_any_name() -> None:
    model, batch = nn.Linear(3, 2), {"timed": torch.randn(4, 3), "memory": torch.randn(4, 2)}

    def loss(model: nn.Module, timed: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        return (model(timed) - memory).square().mean()

    captured = capture_program(model, batch, loss)
    with step_of(captured, model, SGD(model.parameters(), lr=0.0), 1) as step:
        assert step(**batch) == step.timed(**batch) == loss(model, **batch)
        assert step.memory(**batch) == step.memory(batch)


def test_inputs_may_take_gradients_and_the_mode_may_be_any() -> None:
    pair = Pair("towers", OPTIMIZERS["sgd"])
    x, y = pair.inputs
    with pair.placed(1, None) as step:
        for mode in (contextlib.nullcontext, torch.no_grad, torch.inference_mode):
            with mode():
                ours = step(x.clone().requires_grad_(mode is not torch.inference_mode), y)
            assert torch.equal(ours, train(pair.copy, (x, y), pair.loss, pair.copied, 1))
        assert not any(place.requires_grad for place in step._common.inputs)
    pair.assert_same()


def test_another_default_device_changes_nothing() -> None:
    pair = Pair("towers", OPTIMIZERS["adam"])
    with torch.device("meta"), pair.placed(1, None) as step:
        result = [step(*pair.inputs) for _ in range(STEPS)]
    for k, loss in enumerate(result, 1):
        assert torch.equal(loss, train(pair.copy, pair.inputs, pair.loss, pair.copied, k))
    pair.assert_same()


def test_inputs_may_lie_in_memory_as_they_like() -> None:
    pair = Pair("towers", OPTIMIZERS["sgd"])
    x, y = pair.inputs
    with pair.placed(1, None) as step:
        ours = step(x.t().contiguous().t(), torch.stack([y, y], 1)[:, 1])
    theirs = train(pair.copy, pair.inputs, pair.loss, pair.copied, 1)
    assert torch.equal(ours, theirs)
    pair.assert_same()


class Masked(nn.Module):
    """Reads an input and a buffer of which one row may stand for all."""

    shift: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.register_buffer("shift", torch.arange(6.0).expand(4, 6))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.first(x) * mask + self.second(x) * self.shift
        return result


@pytest.mark.parametrize("devices", [1, 2])
def test_one_row_of_an_input_or_a_buffer_may_stand_for_all(
    processes: StartDevices, devices: int
) -> None:
    torch.manual_seed(0)
    model, x, mask = Masked(), torch.randn(4, 6), torch.randn(6).expand(4, 6)
    result = capture_program(model, (x, mask), None, training=False)
    with torch.no_grad():
        expected = model(x, mask)
    with step_of(result, model, None, devices, processes if devices > 1 else None) as step:
        for arguments in (mask, mask.contiguous()):
            assert torch.equal(step(x, arguments), expected)


def test_an_input_may_be_a_parameter() -> None:
    """Which the step updates before it has read the input for the last time."""
    torch.manual_seed(0)
    model, y = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6)), torch.arange(6)
    copied, arguments = copy.deepcopy(model), model[1].weight.detach().clone()
    captured = capture_program(model, (arguments, y), entropy, optimizer="sgd")
    optimizer, theirs = SGD(model.parameters(), lr=0.1), SGD(copied.parameters(), lr=0.1)
    with step_of(captured, model, optimizer, 1) as step:
        ours = step(model[1].weight, y)
    assert torch.equal(ours, train(copied, (arguments, y), entropy, theirs, 1))
    assert_same(state(model), state(copied))


def test_an_input_of_another_kind_is_read_as_a_plain_tensor() -> None:
    """None of its own code runs between the kernels."""
    hook_values: list[str] = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            hook_values.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    pair = Pair("towers", OPTIMIZERS["sgd"])
    x, y = pair.inputs
    theirs = train(pair.copy, (x, y), pair.loss, pair.copied, 1)
    with pair.placed(1, None) as step:
        assert torch.equal(step(x.as_subclass(Watched), y), theirs)
    assert "copy_" in hook_values
    assert not any("addmm" in name for name in hook_values)


def test_inputs_and_results_are_the_callers_alone() -> None:
    pair = Pair("towers", OPTIMIZERS["sgd"])
    x, y = (tensor.clone() for tensor in pair.inputs)
    with pair.placed(1, None) as step:
        alive = weakref.ref(x), weakref.ref(step(x, y))
        del x
        gc.collect()
        assert [tensor() for tensor in alive] == [None, None]


# Interrupts and failures.
def test_ctrl_c_among_the_updates_waits_for_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair("towers", OPTIMIZERS["adam"])
    with pair.placed(1, None) as step:
        pair.both(step, 1)
        assert isinstance(step._devices, LocalDevice)
        names = step._devices._work._device._names
        update = names["update0"]

        def interrupted(gradient: torch.Tensor) -> None:
            signal.raise_signal(signal.SIGINT)
            update(gradient)

        monkeypatch.setitem(names, "update0", interrupted)
        with pytest.raises(KeyboardInterrupt):
            step(*pair.inputs)
        monkeypatch.setitem(names, "update0", update)
        pair.steps += 1
        train(pair.copy, pair.inputs, pair.loss, pair.copied, pair.steps)
        pair.assert_same()
        pair.both(step, 1)
    pair.assert_same()


@pytest.mark.parametrize("before", [0, 1])
def test_hyperparameters_that_no_update_can_have_change_nothing(before: int) -> None:
    """Neither when the step is called for the first time nor when it is tried again."""
    pair = Pair("towers", OPTIMIZERS["adam"])
    with pair.placed(1, None) as step:
        pair.both(step, before)
        [group] = pair.optimizer.param_groups
        group["eps"] = "small"
        for _ in range(2):
            with pytest.raises(SituateError, match=rf"failed: .* as after step {before}"):
                step(*pair.inputs)
        group["eps"] = 1e-6
        pair.both(step, 1)
    pair.assert_same()


def test_state_loaded_after_a_failed_step_stays(
    processes: StartDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step's number is used again, and the copy from the first attempt is out of date."""
    pair = Pair("convolutional", OPTIMIZERS["adam"])
    with pair.placed(2, processes) as step:
        pair.both(step, 1)
        running = type(step._devices)
        for run in (interrupted_behind(running.run), interrupted):
            for trained in (pair.model, pair.copy):
                changed = {name: value + 1 for name, value in trained.state_dict().items()}
                trained.load_state_dict(changed)
            with monkeypatch.context() as patch:
                patch.setattr(running, "run", run)
                with pytest.raises(KeyboardInterrupt):
                    step(*pair.inputs)
            pair.assert_same()
        pair.both(step, 1)
    pair.assert_same()


def interrupted_behind(run: Any) -> Any:
    """A run of the devices, and Ctrl-C before anybody hears of it."""

    def result(running: Any, order: Any) -> None:
        run(running, order)
        raise KeyboardInterrupt

    return result


def interrupted(running: Any, order: Any) -> None:
    raise KeyboardInterrupt


# Random numbers.
@pytest.mark.parametrize("devices", [1, 2])
def test_random_numbers_depend_on_the_seed_and_the_step_alone(
    processes: StartDevices, devices: int
) -> None:
    result: list[list[Any]] = []
    start = processes if devices > 1 else None
    for seed in (0, 0, 1):
        pair = Pair("convolutional", lambda parameters: SGD(parameters, lr=0.0))
        placed_step = pair.placed(devices, start)._program
        model = PlacedStep(placed_step, pair.model, pair.optimizer, DEVICES, seed=seed, start=start)
        with model as step:
            result.append([float(step(*pair.inputs)) for _ in range(2)])
    assert result[0] == result[1] != result[2]
    assert result[0][0] != result[0][1]


def test_the_callers_random_numbers_are_left_alone() -> None:
    before = torch.get_rng_state()
    pair = Pair("convolutional", OPTIMIZERS["sgd"])
    torch.set_rng_state(before)
    with pair.placed(1, None) as step:
        step(*pair.inputs)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("name", "draws"), [("convolutional", True), ("towers", False)])
def test_a_step_that_draws_has_the_generator_to_itself(name: str, draws: bool) -> None:
    """One that does not draw waits for nobody."""
    pair = Pair(name, OPTIMIZERS["sgd"])
    with pair.placed(1, None) as step:
        with kept_generator():
            expected = train(pair.copy, pair.inputs, pair.loss, pair.copied, 1)
            result: list[Any] = []
            thread = threading.Thread(target=lambda: result.append(step(*pair.inputs)))
            thread.start()
            thread.join(0.5 if draws else 60)
            assert thread.is_alive() == draws
            torch.manual_seed(0)
        thread.join()
    assert torch.equal(result[0], expected)
    pair.assert_same()


# Results, timed steps and refused inputs.
def test_a_result_is_not_overwritten_by_the_next_step() -> None:
    pair = Pair("towers", OPTIMIZERS["sgd"])
    with pair.placed(1, None) as step:
        first = step(*pair.inputs)
        value = float(first)
        step(*pair.inputs)
    assert float(first) == value


@pytest.mark.parametrize("devices", [1, 2])
def test_a_timed_step_says_when_each_op_ran(processes: StartDevices, devices: int) -> None:
    pair = Pair("tied", OPTIMIZERS["adam"])
    with pair.placed(devices, processes if devices > 1 else None) as step:
        step.timed(*pair.inputs)
        timed = step.records
        step(*pair.inputs)
        untimed = step.records
    ops = [op for records in timed for op in records.op_starts]
    assert sorted(ops) == list(range(len(pair.program.graph.ops)))
    for records in timed:
        assert records.op_starts.keys() == records.op_ends.keys()
        assert all(
            records.start <= records.op_starts[op] <= records.op_ends[op] <= records.end
            for op in records.op_starts
        )
        assert 0 <= records.waited <= records.end - records.start
    assert [records.op_starts or records.op_ends for records in untimed] == [{}] * devices


@pytest.fixture(scope="module")
def pair() -> Pair:
    """One that no test trains."""
    return Pair("towers", OPTIMIZERS["sgd"])


@pytest.fixture
def step(pair: Pair) -> Iterator[PlacedStep]:
    """Its step."""
    with pair.placed(1, None) as result:
        yield result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(8, 6),), "structured like"),
        ((torch.zeros(8, 6), 3), "structured like"),
        ((torch.zeros(8, 6), torch.zeros(8).long(), 1), "structured like"),
        (
            ({"x": torch.zeros(8, 6)},),
            r"structured like .*: they are \(\{'x': tensor\}\), and were \(tensor, tensor\)$",
        ),
        (
            (torch.zeros(9, 6), torch.zeros(9).long()),
            r"input 0 is float32 \(9, 6\), the step was captured with float32 \(8, 6\): ",
        ),
        ((torch.zeros(8, 6), torch.zeros(8)), r"input 1 is float32 \(8,\), .* with int64 \(8,\): "),
        ((torch.zeros(8, 1), torch.zeros(8).long()), r"input 0 is float32 \(8, 1\)"),
    ],
)
def test_other_inputs_are_refused(
    step: PlacedStep, arguments: tuple[Any, ...], message: str
) -> None:
    before = state(step.model)
    with pytest.raises(SituateError, match=message) as error:
        step(*arguments)
    assert "\n" not in str(error.value)
    assert_same(state(step.model), before)


def test_it_is_the_callers_model_that_learns(pair: Pair) -> None:
    model, inputs, _ = MODELS["towers"]()
    parameters = list(model.parameters())
    with step_of(pair.program, model, SGD(parameters, lr=0.5), 1) as step:
        first, *_, last = (float(step(*inputs)) for _ in range(20))
    assert last < 0.8 * first
    assert [id(p) for p in model.parameters()] == [id(p) for p in parameters]
    with torch.no_grad(), kept_generator(), seeded_draws(0, 1):
        assert float(entropy(model, *inputs)) < last
