"""Tensors of numbers that are tensors are made where the numbers are known."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from tests.readers.calling import of  # noqa: E402


@pytest.mark.parametrize("dtype", [None, torch.float64])
def test_numbers_that_the_step_makes_are_read(dtype):
    def step(model, x):
        two, three = torch.tensor([2, 3])
        made = torch.tensor([[two, three.max()], [two, 1]], dtype=dtype)
        assert made.dtype == (dtype or torch.int64)
        return model.layer(x) * made.sum()

    assert of(step).ops


def test_others_are_not_known():
    with pytest.raises(SituateError, match=r"test_numbers_of_tensors.py:\d+: .*values"):
        of(lambda model, x: model.layer(x) * torch.tensor([x.sum(), 1.0]).sum())
