"""Batch norms that run again."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

AT = torch.ops.aten


@pytest.mark.parametrize("shape", [(8, 5, 7, 7), (6, 4), (3, 6, 4)])
def test_one_without_running_statistics_makes_the_same_numbers(shape):
    x, channels = torch.randn(shape), shape[1]
    weight, bias = torch.randn(channels), torch.randn(channels)
    running = torch.zeros(channels), torch.ones(channels)
    first = AT._native_batch_norm_legit_functional(x, weight, bias, *running, True, 0.1, 1e-5)
    again = AT._native_batch_norm_legit.no_stats(x, weight, bias, True, 0.1, 1e-5)
    assert all(map(torch.equal, first[:3], again))
