"""Autocast casts a weight that is used again once, as eager PyTorch does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.torch_capture import capture  # noqa: E402
from tests.torch_capture.modes.mixed_precision import cast, compared, loss, step  # noqa: E402


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
    assert compared(step(forward)).within(0.0)


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
    assert compared((Recurrent(), (torch.randn(6, 8),), loss)).within(0.0)


def test_tied_weights_share_a_cast():
    model, inputs, of_step = step(lambda model, x: repeated(model, model.layers[1](x)))
    model.layers[1].up.weight = model.layers[0].up.weight
    assert compared((model, inputs, of_step)).within(0.0)


def test_modules_that_are_one_share_a_cast():
    def inside(model, x):
        with cast():
            return model.plain(x)

    model, inputs, of_step = step(inside)
    model.layers[1] = model.layers[2] = model.layers[0]
    assert compared((model, inputs, of_step)).within(0.0)


def test_the_cache_is_as_it_was_after_a_capture():
    kernels = torch.ops.aten.to.dtype.py_kernels
    assert casts(repeated)
    assert torch.ops.aten.to.dtype.py_kernels is kernels
    assert torch.is_autocast_cache_enabled()
