"""Strides and dtypes of fake results equal those of real kernels."""

from __future__ import annotations

from itertools import product

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
from situate.torch_capture.patches.kernel_results import (  # noqa: E402
    layouts_as_computed,
    statistics_as_computed,
)
from tests.runtime.placing import sgd  # noqa: E402


def permuted(*shape: int) -> list[torch.Tensor]:
    """Ones that lie in memory in every order of two dimensions, and channels last."""
    tensors = [torch.ones(shape), torch.ones(shape).movedim(1, -1).contiguous().movedim(-1, 1)]
    for k in range(1, len(shape)):
        tensors.append(torch.ones(shape).transpose(0, k).contiguous().transpose(0, k))
    tensors.append(torch.ones(shape).transpose(1, -1).contiguous().transpose(1, -1))
    return list({tensor.stride(): tensor for tensor in tensors}.values())


def gradient_of_layer_norm(g, x, output_mask):
    """The kernel, for statistics and weights that are all one."""
    return aten.native_layer_norm_backward(
        g, x, x.shape[2:], x[:, :, :1], x[:, :, :1], x[0, 0], x[0, 0], output_mask
    )


ALL = [True] * 3
W = torch.ones(4)
# Fake results have the strides of real kernels.
KERNELS = {
    "layer norm": lambda g, x: aten.native_layer_norm(x[:, :1], x.shape[-1:], None, None, 1e-5),
    "gradient of layer norm": lambda g, x: gradient_of_layer_norm(g, x, ALL),
    "part of it": lambda g, x: gradient_of_layer_norm(g, x, [False, True, False]),
    "softmax": lambda g, x: aten._softmax_backward_data(g, x, 1, torch.float32),
    "log softmax": lambda g, x: aten._log_softmax_backward_data(g, x, 1, torch.float32),
    "log sigmoid": lambda g, x: aten.log_sigmoid_forward(x),
    "mse": lambda g, x: aten.mse_loss_backward(g, x, x, 0),
    "smooth l1": lambda g, x: aten.smooth_l1_loss_backward(g, x, x, 0, 1.0),
    "huber": lambda g, x: aten.huber_loss_backward(g, x, x, 0, 1.0),
    "batch norm": lambda g, x: aten.native_batch_norm(x, W, W, None, None, True, 0.1, 1e-5),
    "batch norm that infers": lambda g, x: aten._native_batch_norm_legit_no_training(
        x, W, W, W, W, 0.1, 1e-5
    ),
    "gradient of batch norm": lambda g, x: aten.native_batch_norm_backward(
        g, x, W, W, W, W, W, True, 1e-5, ALL
    ),
    "dropout": lambda g, x: aten.native_dropout_backward(g, x > 0, 2.0),
    "dropout of what is repeated": lambda g, x: aten.native_dropout_backward(
        g[:1, :1].expand_as(x), x > 0, 2.0
    ),
    "hardswish": lambda g, x: aten.hardswish_backward(g, x),
    "hardtanh": lambda g, x: aten.hardtanh_backward(g, x, -1, 1),
    "softplus": lambda g, x: aten.softplus_backward(g, x, 1, 20),
    "logit": lambda g, x: aten.logit_backward(g, x, 0.1),
    "binary cross entropy": lambda g, x: aten.binary_cross_entropy_backward(g, x, x, None, 0),
    "gated linear unit": lambda g, x: aten.glu_backward(g[:, :2], x, 1),
    "elu": lambda g, x: aten.elu_backward(g, 1, 1, 1, False, x),
}


SHAPES = [(3, 4, 5), (3, 4, 5, 6), (3, 4, 1, 1), (2, 4, 3, 5, 6)]
NORMS = ("batch norm", "batch norm that infers", "gradient of batch norm")


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [
        *((kernel, shape) for kernel in KERNELS for shape in SHAPES),
        *((kernel, (3, 4, 5, 1)) for kernel in NORMS),
    ],
)
def test_fake_tensors_have_the_strides_of_real_ones(kernel, shape):
    compute, pairs = KERNELS[kernel], list(product(permuted(*shape), repeat=2))
    real = [_strides(compute(g, x)) for g, x in pairs]
    # One mode for all pairs, as in a capture: to make one takes longer than to compute in it.
    with layouts_as_computed(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [_strides(compute(*map(mode.from_tensor, pair))) for pair in pairs]
    assert fake == real


def _strides(results):
    results = results if isinstance(results, (tuple, list)) else [results]
    return [None if result is None else result.stride() for result in results]


class Normalised(nn.Module):
    """An image that is normalised twice, pixel by pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(8, 8, 1)
        self.first, self.second = nn.LayerNorm(8), nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.convolution(x).permute(0, 2, 3, 1)
        first, second = (norm(y).permute(0, 3, 1, 2) for norm in (self.first, self.second))
        return x * first - x.sin() * second


def gradients_added_apart(model, optimizer):
    """A step that adds the gradients of both norms on a second device."""
    program = capture_program(model, X, total)
    graph = program.graph
    second = [op.phase == "backward" and op.kind == "aten.add" for op in graph.ops]
    assert sum(second) == 1
    cut = place(program, np.array(second, np.int32), graph.order, 2)
    machine = [RealDevice(f"cpu:{d}", "cpu", 1) for d in range(2)]
    return PlacedStep(cut, model, optimizer, machine, seed=0)


X = (torch.randn(2, 8, 4, 4, generator=torch.Generator().manual_seed(0)),)


def total(model, x):
    return model(x).sum()


def test_a_gradient_that_crosses_is_added_up_in_the_order_of_the_unplaced_step():
    torch.manual_seed(0)
    assert compare(Normalised(), X, total, sgd, gradients_added_apart, threads=1).within(0.0)


STATISTICS_X = (torch.randn(3, 4, 5, 5, generator=torch.Generator().manual_seed(0)),)

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
    program = capture_program(model, STATISTICS_X, autocast)
    graph = program.graph
    second = np.array([op.phase == "backward" for op in graph.ops], np.int32)
    cut = place(program, second, graph.order, 2)
    machine = [RealDevice(f"cpu:{d}", "cpu", 1) for d in range(2)]
    return PlacedStep(cut, model, optimizer, machine, seed=0)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_backward_pass_on_another_device_is_equal_to_the_last_bit(layer):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(4, 4, 1), LAYERS[layer](), nn.Conv2d(4, 2, 1))
    assert compare(model, STATISTICS_X, autocast, sgd, backward_apart, threads=1).within(0.0)


# Statistics of normalisations have the dtype of real kernels.
STATISTICS_KERNELS = {
    "layer": lambda x, w: aten.native_layer_norm.default(x, [4], w, w, 1e-5),
    "group": lambda x, w: aten.native_group_norm.default(x, w, w, 2, 4, 16, 2, 1e-5),
    "batch": lambda x, w: aten.native_batch_norm.default(x, w, w, None, None, True, 0.1, 1e-5),
}


@pytest.mark.parametrize("weight", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kernel", STATISTICS_KERNELS)
def test_fake_tensors_have_the_types_and_strides_of_real_ones(kernel, dtype, weight):
    tensors = torch.ones(2, 4, 4, 4, dtype=dtype), torch.ones(4, dtype=weight)
    try:
        real = STATISTICS_KERNELS[kernel](*tensors)
    except RuntimeError:
        pytest.skip("there is no such kernel")
    with statistics_as_computed(), FakeTensorMode() as mode:
        fake = STATISTICS_KERNELS[kernel](*map(mode.from_tensor, tensors))
    assert [(t.dtype, t.stride()) for t in fake] == [(t.dtype, t.stride()) for t in real]
