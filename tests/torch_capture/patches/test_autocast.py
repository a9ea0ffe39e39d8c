"""Autocast of devices that the machine lacks, and one cast of each weight per region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.data.graph import Graph  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.patches.autocast import autocast_of_the_cpu  # noqa: E402
from situate.torch_capture.patches.named_devices import NamedDevices  # noqa: E402
from tests.readers.calling import X, mean, of  # noqa: E402
from tests.torch_capture.patches.mixed_precision import cast, compare_steps, loss, step  # noqa: E402


# Autocast of any device casts as the CPU's does.
def autocast_layer(device: str, *args: Any, **options: Any) -> Callable[[Any, Tensor], Tensor]:
    """The output of a layer under `torch.autocast`."""

    def function(model: Any, x: Tensor) -> Tensor:
        with torch.autocast(device, *args, **options):
            out: Tensor = model.layer(x)
        return out

    return function


def old(model: Any, x: Tensor) -> Tensor:
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        out: Tensor = model.layer(x)
    return out


HALF, BRAIN = autocast_layer("cpu", torch.float16), autocast_layer("cpu", torch.bfloat16)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("function", "same"),
    [
        (autocast_layer("cuda"), HALF),
        (autocast_layer("cuda", dtype=torch.bfloat16, enabled=True), BRAIN),
        (autocast_layer("cuda", torch.bfloat16), BRAIN),
        (autocast_layer("xpu", dtype=torch.float16), HALF),
        (torch.autocast("cpu", torch.bfloat16)(lambda model, x: model.layer(x)), BRAIN),
        (old, BRAIN),
    ],
)
def test_it_is_the_cpus(function: Any, same: Any, training: bool) -> None:
    assert of(function, training).ops == of(same, training).ops


def test_a_warning_names_the_device() -> None:
    (warning,) = of(autocast_layer("cuda", torch.bfloat16)).warnings
    assert warning.startswith("the model or step names cuda:")


def test_one_that_is_not_enabled_names_none_and_does_nothing() -> None:
    assert not of(autocast_layer("cuda", enabled=False)).warnings
    assert not of(autocast_layer("cpu", torch.bfloat16)).warnings


def test_one_that_was_made_before_the_capture_counts_where_it_holds() -> None:
    region = torch.autocast("cpu", torch.bfloat16)
    region.device = "cuda"  # as where there is a GPU

    def function(model: Any, x: Tensor) -> Tensor:
        with region:
            out: Tensor = model.layer(x)
        return out

    assert of(function).ops == of(BRAIN).ops
    assert region.device == "cuda"


def within(model: Any, x: Tensor) -> Tensor:
    """Takes a part of it out, which is computed as it comes."""
    with torch.autocast("cuda", torch.bfloat16):
        with torch.autocast("cuda", enabled=False):
            whole = model.layer(x)
        return model.layer(whole)


def test_a_part_of_it_may_be_taken_out() -> None:
    dtypes = [op.dtype for op in of(within, False).ops if op.kind == "aten.addmm"]
    assert dtypes == ["float32", "bfloat16"]


def test_a_step_that_asks_for_it_is_told_what_holds() -> None:
    with autocast_of_the_cpu(NamedDevices()):
        assert not torch.is_autocast_enabled()
        with torch.autocast("cuda", torch.bfloat16):
            assert torch.is_autocast_enabled()
            assert torch.is_autocast_enabled("cuda")
            assert torch.get_autocast_dtype("cuda") is torch.bfloat16


def test_that_of_the_cpu_is_none_of_another_device() -> None:
    with autocast_of_the_cpu(NamedDevices()):
        default = torch.get_autocast_dtype("cuda")
        with torch.autocast("cpu", torch.bfloat16):
            assert not torch.is_autocast_enabled()
            assert torch.is_autocast_enabled("cpu")
            assert torch.get_autocast_dtype("cuda") is default
        assert not torch.is_autocast_enabled("cpu")


def decorated() -> Graph:
    class Net(nn.Linear):
        @torch.autocast("cuda", dtype=torch.bfloat16)
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x)

    return capture(lambda: (Net(3, 3), X, mean), name="m")


def test_a_method_may_be_decorated_with_it() -> None:
    with autocast_of_the_cpu(NamedDevices()):  # as while the module is imported
        graph = decorated()
    assert "bfloat16" in {op.dtype for op in graph.ops}


# A weight is cast once per region, so gradients add up as in eager PyTorch.
def repeated(model, x, **options):
    with cast(**options):
        for _ in range(3):
            x = model.layers[0](x)
        return model.head(x)


def without_cache(model, x):
    return repeated(model, x, cache_enabled=False)


def in_half_precision(model, x):
    return repeated(model, x, dtype=torch.float16)


def in_regions_of_their_own(model, x):
    for _ in range(3):
        with cast():
            x = model.layers[0](x)
    return model.head(x)


def in_nested_regions(model, x):
    with cast():
        x = model.layers[0](x)
        with cast(enabled=False):
            x = model.layers[0](x.float())
            with cast():
                x = model.layers[0](x)
        return model.head(x)


def first_without_gradients(model, x):
    with cast():
        with torch.no_grad():
            y = model.layers[0](x)
        return model.head(model.layers[0](model.layers[0](x)) + y)


def cast_by_the_program(model, x):
    with cast():
        y = x.bfloat16() @ model.head.weight.bfloat16().t()
        return y + model.head(x) + model.head(model.layers[0](x))


STEPS = [
    repeated,
    without_cache,
    in_half_precision,
    in_regions_of_their_own,
    in_nested_regions,
    first_without_gradients,
    cast_by_the_program,
]


@pytest.mark.parametrize("forward", STEPS)
def test_a_weight_that_is_used_again_is_trained_to_the_last_bit(forward):
    assert compare_steps(step(forward)).within(0.0)


def casts(forward):
    graph = capture(lambda: step(forward), name="m")
    return sum(op.kind == "aten._to_copy" and op.phase == "forward" for op in graph.ops)


def test_a_region_casts_a_weight_once():
    assert casts(repeated) == casts(without_cache) - 4


@pytest.mark.parametrize("kind", [nn.RNN, nn.RNNCell, nn.LSTMCell])
def test_a_recurrent_layer_is_trained_to_the_last_bit(kind):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = kind(8, 8)

        def forward(self, x):
            with cast():
                if kind is nn.RNN:
                    return self.cell(x[:, None])[0]
                state = self.cell(x)
                for _ in range(2):
                    state = self.cell(x, state)
                return state if kind is nn.RNNCell else state[0]

    torch.manual_seed(0)
    assert compare_steps((Recurrent(), (torch.randn(6, 8),), loss)).within(0.0)


def test_tied_weights_share_a_cast():
    model, inputs, of_step = step(lambda model, x: repeated(model, model.layers[1](x)))
    model.layers[1].up.weight = model.layers[0].up.weight
    assert compare_steps((model, inputs, of_step)).within(0.0)


def test_modules_that_are_one_share_a_cast():
    def inside(model, x):
        with cast():
            return model.plain(x)

    model, inputs, of_step = step(inside)
    model.layers[1] = model.layers[2] = model.layers[0]
    assert compare_steps((model, inputs, of_step)).within(0.0)


def test_the_cache_is_as_it_was_after_a_capture():
    kernels = torch.ops.aten.to.dtype.py_kernels
    assert casts(repeated)
    assert torch.ops.aten.to.dtype.py_kernels is kernels
    assert torch.is_autocast_cache_enabled()
