"""Steps on devices with memory of their own: the tests' stand-in, and GPUs if there are any."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.runtime import step as steps  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.model_state.optimizers import default_optimizer  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.step import PlacedStep, StartDevices  # noqa: E402
from situate.runtime.unplaced import UnplacedStep  # noqa: E402
from tests.runtime.gpus import GPUS, needs_gpus  # noqa: E402
from tests.runtime.models import MODELS, ModelParts, entropy  # noqa: E402
from tests.runtime.steps import cut, state  # noqa: E402

CPU, APART = RealDevice("cpu", "cpu", 1), RealDevice("apart", "apart:0", 1, mirrored=True)
TOLERANCE = 1e-5
"""Models in which a kernel for CPUs alone is replaced, which rounds otherwise."""
CUDA_TOLERANCE = 1e-4
"""Kernels of a GPU add up in another order."""


class Recurrent(nn.Module):
    """A layer whose kernel is for CPUs only, in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.layer = nn.LSTM(8, 6, batch_first=True, bidirectional=True)
        self.out = nn.Linear(12, 20)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.layer(self.words(words))[0])
        return logits


class Attending(nn.Module):
    """Heads that share keys and values, turned by a kernel that keeps strides on a CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.queries, self.others = nn.Linear(16, 16), nn.Linear(16, 16)
        self.out = nn.Linear(16, 20)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words)
        b, t, _ = x.shape
        turned = self.queries(x).view(b, t, 4, 4).transpose(1, 2).cos()
        queries = turned.transpose(1, 2).view(b, t, 16).view(b, t, 4, 4).transpose(1, 2)
        keys, values = self.others(x).view(b, t, 2, 2, 4).permute(2, 0, 3, 1, 4)
        equality = F.scaled_dot_product_attention(
            queries, keys, values, is_causal=True, enable_gqa=True
        )
        logits: torch.Tensor = self.out(equality.transpose(1, 2).reshape(b, t, 16))
        return logits


class Stub(nn.Module):
    """Reads constants that it makes on the way, and draws."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x) * torch.arange(6.0) + torch.eye(8, 6) + torch.rand(8, 6)
        equality: torch.Tensor = x[:, torch.tensor([0, 2, 1])].tril()
        return equality


def of_words(model: nn.Module) -> ModelParts:
    words = torch.randint(20, (3, 5))
    return model, (words, words.roll(1, 1)), entropy


def allocations() -> ModelParts:
    return Stub(), (torch.randn(8, 6), torch.randint(3, (8,))), entropy


NETWORKS: dict[str, Callable[[], ModelParts]] = {
    **{name: MODELS[name] for name in ("towers", "convolutional", "tied", "odd", "strided")},
    "recurrent": lambda: of_words(Recurrent()),
    "attending": lambda: of_words(Attending()),
    "made": allocations,
}


def without_draws(parts: ModelParts) -> ModelParts:
    """The same without dropout: from the same seed a GPU draws other numbers than a CPU."""
    for module in parts[0].modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return parts


def assert_trained_alike(
    parts: ModelParts,
    devices: Sequence[RealDevice],
    start: StartDevices | None,
    tolerance: float,
    *,
    keep: bool = True,
) -> None:
    """Three placed steps return PyTorch's results on the CPU, and leave an equal model."""
    model, inputs, loss = parts
    copied = copy.deepcopy(model)
    theirs = UnplacedStep(
        copied, inputs, loss, default_optimizer("momentum", [*copied.parameters()]), clip=1.0
    )
    placed_step = cut(
        capture_program(model, inputs, loss, optimizer="momentum:clip=1"), len(devices)
    )
    ours = default_optimizer("momentum", [*model.parameters()])
    with PlacedStep(placed_step, model, ours, devices, start=start, keep=keep) as step:
        for k in range(3):
            torch.testing.assert_close(
                (step.timed if k == 2 else step)(*inputs), *theirs(), rtol=0, atol=tolerance
            )
    torch.testing.assert_close(state(model), state(copied), rtol=0, atol=tolerance)


# Equal numbers, state that comes back, and memory counted once.
@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("devices", [(APART,), (CPU, APART)], ids=["alone", "beside a CPU"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_is_that_of_pytorch(
    name: str, devices: Any, processes: StartDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "defining_modules", lambda kernels: ("tests.runtime.apart.backend",))
    torch.manual_seed(0)
    assert_trained_alike(NETWORKS[name](), devices, processes, TOLERANCE)


CUDA_DEVICES = {
    "cuda alone": ((GPUS[0],), 1),
    "cuda beside a CPU": ((CPU, GPUS[0]), 1),
    "cuda beside cuda": (tuple(GPUS), 2),
}


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param(devices, id=name, marks=needs_gpus(count))
        for name, (devices, count) in CUDA_DEVICES.items()
    ],
)
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "made"])
def test_a_step_on_gpus_is_that_of_pytorch_on_a_cpu(
    name: str, devices: Any, processes: StartDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    torch.manual_seed(0)
    parts = without_draws(NETWORKS[name]())
    assert_trained_alike(parts, devices, processes, CUDA_TOLERANCE)


@needs_gpus(1)
@pytest.mark.parametrize("keep", [True, False])
def test_a_gpu_of_this_process_brings_its_state_back_cuda(keep: bool) -> None:
    torch.manual_seed(0)
    assert_trained_alike(MODELS["towers"](), GPUS[:1], None, CUDA_TOLERANCE, keep=keep)


@pytest.mark.usefixtures("apart")
def test_received_tensors_are_not_counted_twice(
    processes: StartDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests' device reports no allocation, so only the state counts."""
    monkeypatch.setattr(steps, "defining_modules", lambda kernels: ("tests.runtime.apart.backend",))
    model, inputs, loss = MODELS["towers"]()
    placed_step = cut(capture_program(model, inputs, loss, optimizer="sgd"), 1)
    with PlacedStep(
        placed_step,
        model,
        default_optimizer("sgd", [*model.parameters()]),
        [APART],
        start=processes,
    ) as step:
        assert step.memory(*inputs) == [sum(tensor.nbytes for tensor in state(model).values())]
