"""Interpolation is traced as the kernels that eager PyTorch runs."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

MODES = {
    "nearest": (nn.Conv2d, 2, "aten.upsample_nearest2d"),
    "nearest-exact": (nn.Conv3d, 3, "aten._upsample_nearest_exact3d"),
    "linear": (nn.Conv1d, 1, "aten.upsample_linear1d"),
    "bilinear": (nn.Conv2d, 2, "aten.upsample_bilinear2d"),
    "trilinear": (nn.Conv3d, 3, "aten.upsample_trilinear3d"),
    "bicubic": (nn.Conv2d, 2, "aten.upsample_bicubic2d"),
}
SCALED, SIZED = {"scale_factor": 2.0}, {"size": 7, "align_corners": True}
ALIGNED = [mode for mode in MODES if not mode.startswith("nearest")]


def build(mode: str, **how: object):
    """A convolution, what it gives interpolated, and its mean square."""
    convolution, dimensions, _ = MODES[mode]
    torch.manual_seed(0)
    model = nn.Sequential(convolution(3, 4, 1), nn.Upsample(mode=mode, **how))
    return model, (torch.randn(2, 3, *[5] * dimensions),), lambda model, x: (model(x) ** 2).mean()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("mode", "how"), [*((mode, SCALED) for mode in MODES), *((mode, SIZED) for mode in ALIGNED)]
)
def test_a_placed_step_is_equal_to_the_last_bit(mode, how, training):
    model, inputs, loss = build(mode, **how)
    step = partial(placed_step, given=(inputs, loss if training else None))
    made = sgd if training else None
    assert compare(model, inputs, loss if training else None, made, step, threads=1).within(0.0)


@pytest.mark.parametrize("mode", MODES)
def test_there_is_one_op_each_way(mode):
    kernel = MODES[mode][2]
    graph = capture(partial(build, mode, scale_factor=2.0), name="m")
    kinds = [op.kind for op in graph.ops if "upsample" in op.kind]
    assert kinds == [kernel, f"{kernel}_backward"]
    assert not any("index" in op.kind for op in graph.ops)


def channels_last(model, x):
    """A loss whose gradient comes back with its channels last."""
    return model(x).to(memory_format=torch.channels_last).square().sum()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_a_gradient_keeps_its_memory_format(mode):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Upsample(scale_factor=2.0, mode=mode))
    inputs = (torch.randn(2, 3, 8, 8),)
    step = partial(placed_step, given=(inputs, channels_last))
    assert compare(model, inputs, channels_last, sgd, step, threads=1).within(0.0)
