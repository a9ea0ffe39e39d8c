"""Kernels give what a captured step counts on, on whatever device it is read."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.ops import aten  # noqa: E402

from situate.runtime.equality import compare  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.programs.placed import place  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from situate.torch_capture.patches.norm_statistics import statistics_as_computed  # noqa: E402
from tests.runtime.placing import sgd  # noqa: E402

X = (torch.randn(3, 4, 5, 5, generator=torch.Generator().manual_seed(0)),)

LAYERS = {
    "layer": lambda: nn.LayerNorm(5),
    "group": lambda: nn.GroupNorm(2, 4),
    "batch": lambda: nn.BatchNorm2d(4),
    "batch without weights": lambda: nn.BatchNorm2d(4, affine=False),
    "instance": lambda: nn.InstanceNorm2d(4, affine=True),
}


def autocast(model, x):
    with torch.autocast("cpu", torch.bfloat16):
        return model(x).float().square().mean()


def backward_apart(model, optimizer):
    """A step whose backward pass is on a second device."""
    program = capture_program(model, X, autocast)
    graph = program.graph
    second = np.array([op.phase == "backward" for op in graph.ops], np.int32)
    cut = place(program, second, graph.order, 2)
    machine = [RealDevice(f"cpu:{d}", "cpu", 1) for d in range(2)]
    return PlacedStep(cut, model, optimizer, machine, seed=0)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_backward_pass_on_another_device_is_equal_to_the_last_bit(layer):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(4, 4, 1), LAYERS[layer](), nn.Conv2d(4, 2, 1))
    assert compare(model, X, autocast, sgd, backward_apart, threads=1).within(0.0)


KERNELS = {
    "layer": lambda x, w: aten.native_layer_norm.default(x, [4], w, w, 1e-5),
    "group": lambda x, w: aten.native_group_norm.default(x, w, w, 2, 4, 16, 2, 1e-5),
    "batch": lambda x, w: aten.native_batch_norm.default(x, w, w, None, None, True, 0.1, 1e-5),
}


@pytest.mark.parametrize("weight", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kernel", KERNELS)
def test_fake_tensors_have_the_types_and_strides_of_real_ones(kernel, dtype, weight):
    given = torch.ones(2, 4, 4, 4, dtype=dtype), torch.ones(4, dtype=weight)
    try:
        real = KERNELS[kernel](*given)
    except RuntimeError:
        pytest.skip("there is no such kernel")
    with statistics_as_computed(), FakeTensorMode() as mode:
        fake = KERNELS[kernel](*map(mode.from_tensor, given))
    assert [(t.dtype, t.stride()) for t in fake] == [(t.dtype, t.stride()) for t in real]
