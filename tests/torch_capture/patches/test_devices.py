"""Programs that name, synchronise or choose devices."""

from __future__ import annotations

from functools import cache

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._device import CURRENT_DEVICE  # noqa: E402

from situate.data.graph import Graph  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.patches.devices import (  # noqa: E402
    accelerators_idle,
    devices_stand,
    lie_here,
)
from situate.torch_capture.patches.named_devices import NamedDevices  # noqa: E402


def captured(build, loss=lambda model, x: model(x).mean()) -> Graph:
    return capture(lambda: (*build(), loss), name="net")


def layer():
    return nn.Linear(4, 4), torch.ones(2, 4)


def of(step) -> Graph:
    return captured(layer, step)


def in_a_context(device):
    def step(model, x):
        with torch.device(device):
            return model(x).mean() * torch.ones(1).sum()

    return step


def by_default(model, x):
    torch.set_default_device("cuda")
    try:
        return model(x).mean() * torch.ones(1).sum()
    finally:
        torch.set_default_device(None)


# A step that names devices equals one that names none.
MOVES = {
    "to": (lambda model, x: model(x.to("cuda")).mean(), "cuda"),
    "to a device": (lambda model, x: model(x.to(torch.device("cuda:0"))).mean(), "cuda:0"),
    "to by name": (lambda model, x: model(x.to(device="mps", non_blocking=True)).mean(), "mps"),
    "number": (lambda model, x: model(x.to(0)).mean(), "device 0"),
    "cuda": (lambda model, x: model(x.cuda()).mean(), "cuda"),
    "cuda of a number": (lambda model, x: model(x.cuda(1, non_blocking=True)).mean(), "cuda:1"),
    "cuda of a device": (lambda model, x: model(x.cuda(device="cuda:1")).mean(), "cuda:1"),
    "xpu": (lambda model, x: model(x.xpu()).mean(), "xpu"),
    "type": (lambda model, x: model(x.type("torch.cuda.FloatTensor")).mean(), "cuda"),
    "model": (lambda model, x: model.cuda()(x).mean(), "cuda"),
    "model to": (lambda model, x: model.to("cuda:1", torch.float32)(x).mean(), "cuda:1"),
}
FACTORIES = {
    "ones": (lambda model, x: model(x).mean() * torch.ones(1, device="cuda").sum(), "cuda"),
    "like": (lambda _, x: torch.ones_like(x, device="cuda:1").sum() * x.mean(), "cuda:1"),
    "new": (lambda model, x: model(x).mean() * x.new_ones(1, device="xpu").sum(), "xpu"),
    "tensor": (lambda model, x: model(x).mean() * torch.tensor(1.0, device="hpu"), "hpu"),
    "random": (lambda model, x: model(x).mean() * torch.rand(1, device="mps").sum(), "mps"),
    "context": (in_a_context("cuda:2"), "cuda:2"),
    "default": (by_default, "cuda"),
}


def trained(step):
    """The same, of a model that is trained."""
    return lambda model, x: step(model, x) + model(x).mean()


@pytest.mark.parametrize("case", MOVES)
def test_a_step_that_moves_to_a_device_is_one_that_does_not(case):
    step, name = MOVES[case]
    graph = of(step)
    assert graph.ops == captured(layer).ops
    assert graph.warnings == (
        f"the model or step names {name}: taken as wherever the plan puts an op",
    )


@pytest.mark.parametrize("case", FACTORIES)
def test_what_a_step_makes_on_one_is_made_like_the_rest(case):
    step, name = FACTORIES[case]
    (warning,) = of(trained(step)).warnings
    assert warning.startswith(f"the model or step names {name}:")


def defaulted():
    torch.set_default_device("cuda:1")
    try:
        return layer()
    finally:
        torch.set_default_device(None)


BUILDS = {
    "layer": (lambda: (nn.Linear(4, 4, device="cuda"), torch.ones(2, 4)), "cuda"),
    "model": (lambda: (nn.Linear(4, 4).cuda(), torch.ones(2, 4)), "cuda"),
    "to": (lambda: (nn.Linear(4, 4).to(torch.device("xpu", 1)), torch.ones(2, 4)), "xpu:1"),
    "empty": (lambda: (nn.Linear(4, 4).to_empty(device="cuda"), torch.ones(2, 4)), "cuda"),
    "input": (lambda: (nn.Linear(4, 4), torch.ones(2, 4, device="cuda")), "cuda"),
    "list": (lambda: (nn.Linear(4, 4), torch.tensor([[1.0] * 4] * 2, device="cuda")), "cuda"),
    "moved": (lambda: (nn.Linear(4, 4), torch.ones(2, 4).pin_memory().to("cuda")), "cuda"),
    "default": (defaulted, "cuda:1"),
}


@pytest.mark.parametrize("case", BUILDS)
def test_so_is_what_is_built_on_one(case):
    build, name = BUILDS[case]
    graph = captured(build)
    assert graph.hash == captured(layer).hash
    (warning,) = graph.warnings
    assert warning.startswith(f"the model or step names {name}:")


def test_a_model_that_looks_at_values_while_it_is_built_may_name_one():
    def build():
        model, x = nn.Linear(4, 4).to("cuda"), torch.randn(2, 4, device="cuda")
        return (model, x) if x.sum() < 1e9 else None

    (warning,) = captured(build).warnings
    assert warning.startswith("the model or step names cuda:")


def test_one_line_names_all_of_them():
    def step(model, x):
        return model(x.to("mps").to("cuda:1").cuda()).mean()

    (warning,) = captured(BUILDS["to"][0], step).warnings
    assert warning.startswith("the model or step names cuda, cuda:1, mps, xpu:1:")


def test_the_cpu_and_meta_are_none_of_them():
    def step(model, x):
        size = torch.ones(3, device="meta").numel()
        return model(x.to("cpu").cpu()).mean() * torch.ones(1, device="cpu").sum() * size

    assert not of(step).warnings


def test_a_generator_of_one_is_refused():
    def step(model, x):
        return torch.rand(1, generator=torch.Generator("cuda")) + model(x).mean()

    message = r"test_devices\.py:\d+: this draws from a torch.Generator of another device"
    with pytest.raises(SituateError, match=message):
        of(step)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one to make it on")
def test_what_capture_does_not_see_is_refused_with_its_line():
    def step(model, x):
        apart = nn.TripletMarginWithDistanceLoss(
            distance_function=lambda a, b: (a - b).abs().sum(1) * torch.ones(2, device="cuda")
        )
        return apart(x, x, model(x))

    with pytest.raises(SituateError, match=r"test_devices\.py:\d+: this asks for what only ano"):
        of(step)


def test_all_is_as_before_behind_it():
    before = torch.autocast.__enter__, torch.cuda.synchronize, CURRENT_DEVICE
    with devices_stand(devices := NamedDevices()):
        torch.ones(1, device="cuda")
    assert devices
    assert (torch.autocast.__enter__, torch.cuda.synchronize, CURRENT_DEVICE) == before
    if not torch.cuda.is_available():
        with pytest.raises((AssertionError, RuntimeError)):
            torch.ones(1, device="cuda")


def test_a_tensor_on_meta_lies_here():
    assert lie_here([torch.ones(1), torch.ones(1, device="meta")])


# Calls that wait for a device do nothing.
def accelerator_of(asks):
    def step(model, x):
        asks(x)
        return model(x).mean()

    return capture(lambda: (nn.Linear(4, 4), torch.ones(2, 4), step), name="net")


@cache
def without_accelerator():
    return accelerator_of(lambda _: None)


def on_the_second(_):
    with torch.cuda.device(1):
        pass


def moved_to_the_current(x):
    assert x.to(torch.cuda.current_device()) is x


@pytest.mark.parametrize(
    "asks",
    [
        lambda _: torch.cuda.synchronize(),
        lambda _: torch.cuda.set_device(1),
        lambda _: torch.cuda.nvtx.range_push("here"),
        lambda _: torch.xpu.synchronize(),
        lambda _: torch.mps.synchronize(),
        lambda _: torch.accelerator.synchronize(),
        moved_to_the_current,
        on_the_second,
    ],
)
def test_what_waits_or_chooses_does_nothing(asks):
    graph = accelerator_of(asks)
    assert graph.ops == without_accelerator().ops
    assert len(graph.warnings) == 1


@pytest.mark.skipif(
    torch.accelerator.current_accelerator() is not None, reason="PyTorch was built for GPUs"
)
@pytest.mark.parametrize(
    "asks",
    [
        lambda _: torch.cuda.Stream(),
        lambda _: torch.cuda.current_stream(),
        lambda _: torch.cuda.Event(),
        lambda _: torch.cuda.get_device_capability(),
        lambda _: torch.cuda.get_device_properties(0),
        lambda _: torch.cuda.mem_get_info(),
        lambda _: torch.xpu.current_stream(),
    ],
)
def test_what_only_a_gpu_has_is_refused_with_its_line(asks):
    message = r"^net: capturing the step: .*test_devices\.py:\d+: this asks for what only an"
    with pytest.raises(SituateError, match=message):
        accelerator_of(asks)


def test_what_is_kept_from_within_is_pytorchs_own_later(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: "PyTorch's")
    with accelerators_idle(NamedDevices()):
        synchronize = torch.cuda.synchronize
        assert synchronize() is None
    assert synchronize() == "PyTorch's"
