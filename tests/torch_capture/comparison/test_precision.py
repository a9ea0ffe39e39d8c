"""Steps in more bits than their own, and in their own where they name types of numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.comparison.precision import (  # noqa: E402
    converted,
    in_precision,
    model_in,
)


def test_a_step_runs_in_doubles_and_what_it_makes_has_as_many_bits():
    types = in_precision(torch.float64, lambda dtype: (dtype, torch.ones(1).dtype))
    assert types == (torch.float64, torch.float64)
    assert torch.get_default_dtype() is torch.float32


def test_a_step_that_takes_no_doubles_runs_as_it_is():
    def run(dtype):
        if dtype:
            raise RuntimeError("expected Float and got Double")
        return torch.ones(1).dtype

    assert in_precision(torch.float64, run) is torch.float32


def test_a_step_that_fails_either_way_fails():
    def run(_):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_precision(torch.float64, run)
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_are_converted_and_take_gradients_as_before(dtype):
    assert converted(torch.ones(2, requires_grad=True), dtype).requires_grad
    assert converted(torch.ones(2, dtype=torch.bfloat16), dtype).dtype is dtype
    assert converted(torch.ones(2, dtype=torch.complex64), dtype).dtype is dtype.to_complex()
    integers = torch.arange(3)
    assert converted(integers, dtype) is integers


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_is_converted_but_for_integers_and_complex_numbers(dtype):
    model = torch.nn.BatchNorm1d(2, dtype=torch.bfloat16)
    model.register_buffer("phase", torch.ones(2, dtype=torch.complex64))
    assert model_in(dtype, model).weight.dtype is dtype
    assert model.num_batches_tracked.dtype is torch.int64
    assert model.phase.dtype is torch.complex64
    assert model_in(None, model).weight.dtype is dtype
