"""Autocast of another device is the CPU's, with the dtype it has there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.data.graph import Graph  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.modes.autocast import autocast_of_the_cpu  # noqa: E402
from situate.torch_capture.patches.named_devices import NamedDevices  # noqa: E402
from tests.readers.calling import X, mean, of  # noqa: E402


def cast(device: str, *given: Any, **named: Any) -> Callable[[Any, Tensor], Tensor]:
    """The output of a layer under `torch.autocast`."""

    def function(model: Any, x: Tensor) -> Tensor:
        with torch.autocast(device, *given, **named):
            out: Tensor = model.layer(x)
        return out

    return function


def old(model: Any, x: Tensor) -> Tensor:
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        out: Tensor = model.layer(x)
    return out


HALF, BRAIN = cast("cpu", torch.float16), cast("cpu", torch.bfloat16)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("function", "same"),
    [
        (cast("cuda"), HALF),
        (cast("cuda", dtype=torch.bfloat16, enabled=True), BRAIN),
        (cast("cuda", torch.bfloat16), BRAIN),
        (cast("xpu", dtype=torch.float16), HALF),
        (torch.autocast("cpu", torch.bfloat16)(lambda model, x: model.layer(x)), BRAIN),
        (old, BRAIN),
    ],
)
def test_it_is_the_cpus(function: Any, same: Any, training: bool) -> None:
    assert of(function, training).ops == of(same, training).ops


def test_a_warning_names_the_device() -> None:
    (warning,) = of(cast("cuda", torch.bfloat16)).warnings
    assert warning.startswith("the model or step names cuda:")


def test_one_that_is_not_enabled_names_none_and_does_nothing() -> None:
    assert not of(cast("cuda", enabled=False)).warnings
    assert not of(cast("cpu", torch.bfloat16)).warnings


def test_one_that_was_made_before_the_capture_counts_where_it_holds() -> None:
    made = torch.autocast("cpu", torch.bfloat16)
    made.device = "cuda"  # as where there is a GPU

    def function(model: Any, x: Tensor) -> Tensor:
        with made:
            out: Tensor = model.layer(x)
        return out

    assert of(function).ops == of(BRAIN).ops
    assert made.device == "cuda"


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
