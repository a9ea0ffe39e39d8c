"""Steps in 64 bits, and in their own where they name types of numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.comparison.double_precision import (  # noqa: E402
    doubled,
    in_most_bits,
)


def test_a_step_runs_in_doubles_and_what_it_makes_has_as_many_bits():
    assert in_most_bits(lambda doubles: (doubles, torch.ones(1).dtype)) == (True, torch.float64)
    assert torch.get_default_dtype() is torch.float32


def test_a_step_that_takes_no_doubles_runs_as_it_is():
    def run(doubles):
        if doubles:
            raise RuntimeError("expected Float and got Double")
        return torch.ones(1).dtype

    assert in_most_bits(run) is torch.float32


def test_a_step_that_fails_either_way_fails():
    def run(_):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_most_bits(run)
    assert torch.get_default_dtype() is torch.float32


def test_numbers_are_doubled_and_take_gradients_as_before():
    assert doubled(torch.ones(2, requires_grad=True)).requires_grad
    assert doubled(torch.ones(2)).dtype is torch.float64
    assert doubled(torch.ones(2, dtype=torch.complex64)).dtype is torch.complex128
    integers = torch.arange(3)
    assert doubled(integers) is integers
