"""Calls of `torch.cuda` in a step: those that change nothing do nothing, the rest is refused."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.patches.accelerators import accelerators_idle  # noqa: E402
from situate.torch_capture.patches.named_devices import NamedDevices  # noqa: E402


def of(asks):
    def step(model, x):
        asks(x)
        return model(x).mean()

    return capture(lambda: (nn.Linear(4, 4), torch.ones(2, 4), step), name="net")


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
    graph = of(asks)
    assert graph.ops == of(lambda _: None).ops
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
    message = r"^net: capturing the step: .*test_accelerators\.py:\d+: this asks for what only an"
    with pytest.raises(SituateError, match=message):
        of(asks)


def test_what_is_kept_from_within_is_pytorchs_own_later(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: "PyTorch's")
    with accelerators_idle(NamedDevices()):
        kept = torch.cuda.synchronize
        assert kept() is None
    assert kept() == "PyTorch's"
