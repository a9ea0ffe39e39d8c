"""A step that asks for a device that this PyTorch has not is refused, with its line."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.readers.torch import capture  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.accelerator.current_accelerator() is not None, reason="PyTorch was built for GPUs"
)

STEPS = {
    "ones": lambda model, x: model(x).mean() * torch.ones(1, device="cuda").sum(),
    "like": lambda model, x: model(x).mean() * torch.ones_like(x, device="cuda:1").sum(),
    "tensor": lambda model, x: model(x).mean() * torch.tensor(1.0, device="cuda"),
    "random": lambda model, x: model(x).mean() * torch.rand(1, device="mps").sum(),
    "to": lambda model, x: model(x.to("cuda")).mean(),
    "to a device": lambda model, x: model(x.to(torch.device("cuda:0"))).mean(),
    "number": lambda model, x: model(x.to(0)).mean(),
    "cuda": lambda model, x: model(x.cuda()).mean(),
    "cuda of a number": lambda model, x: model(x.cuda(0)).mean(),
    "model": lambda model, x: model.cuda()(x).mean(),
    "generator": lambda model, x: (
        torch.rand(1, generator=torch.Generator("cuda")) + model(x).mean()
    ),
    "stream": lambda model, x: (torch.cuda.Stream(), model(x).mean())[1],
    "current": lambda model, x: model(x.to(torch.cuda.current_device())).mean(),
}

BUILDS = {
    "layer": lambda: (nn.Linear(4, 4, device="cuda"), torch.ones(2, 4)),
    "model": lambda: (nn.Linear(4, 4).cuda(), torch.ones(2, 4)),
    "input": lambda: (nn.Linear(4, 4), torch.ones(2, 4, device="cuda")),
    "list": lambda: (nn.Linear(4, 4), torch.tensor([[1.0] * 4], device="cuda")),
    "moved": lambda: (nn.Linear(4, 4), torch.ones(2, 4).to("cuda")),
}

REFUSAL = (
    r": .*test_devices\.py:\d+: this asks for another device than the CPU, .*: leave the device "
    r"out, or take that of an input \(x\.device\)$"
)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_asks_for_one_is_refused(step):
    with pytest.raises(SituateError, match=r"^net: capturing the step" + REFUSAL):
        capture(lambda: (nn.Linear(4, 4), torch.ones(2, 4), STEPS[step]), name="net")


@pytest.mark.parametrize("build", BUILDS)
def test_so_is_what_is_built_on_one(build):
    with pytest.raises(SituateError, match=r"^net: building the model" + REFUSAL):
        capture(lambda: (*BUILDS[build](), lambda model, x: model(x).mean()), name="net")


def test_the_remedy_helps():
    def loss(model, x):
        return (model(x.to(x.device)) * torch.ones(4, device=x.device)).mean()

    assert capture(lambda: (nn.Linear(4, 4), torch.ones(2, 4), loss), name="net").ops


def test_meta_is_no_other_device():
    def loss(model, x):
        return model(x).mean() * torch.ones(3, device="meta").numel()

    assert capture(lambda: (nn.Linear(4, 4), torch.ones(2, 4), loss), name="net").ops
