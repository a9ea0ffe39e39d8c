"""Statistics of a batch, combined from those of its slices."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.slices.norm_operators import (  # noqa: E402
    batch_norm_gradients,
    batch_norm_statistics,
)

DOUBLE = {"dtype": torch.float64}


# The combined statistics and gradients equal those of one norm over all numbers.
@pytest.mark.parametrize("counts", [[4, 4], [1, 5, 2], [1] * 7])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_statistics_are_those_of_all_numbers_together(counts, offset):
    torch.manual_seed(0)
    x = torch.randn(sum(counts), 3, **DOUBLE) + offset
    parts = [torch.var_mean(part, 0, correction=0) for part in x.split(counts)]
    variances, means = map(list, zip(*parts, strict=True))
    running = [torch.zeros(3, **DOUBLE), torch.ones(3, **DOUBLE)]
    results = batch_norm_statistics(means, variances, counts, running, 0.25)
    expected = x.mean(0), x.var(0, correction=0), 0.25 * x.mean(0), 0.75 + 0.25 * x.var(0)
    for one, other in zip(results, expected, strict=True):
        torch.testing.assert_close(one, other)
    assert len(batch_norm_statistics(means, variances, counts, [], 0.25)) == 2


@pytest.mark.parametrize("weighed", [True, False])
def test_gradients_lack_a_linear_function_of_what_is_normalised(weighed):
    torch.manual_seed(0)
    x, sent = torch.randn(8, 3, **DOUBLE, requires_grad=True), torch.randn(8, 3, **DOUBLE)
    weight = torch.rand(3, **DOUBLE) if weighed else None
    torch.nn.functional.batch_norm(x, None, None, weight, None, True).backward(sent)
    variance, mean = torch.var_mean(x.detach(), 0, correction=0)
    scale = torch.rsqrt(variance + 1e-5)
    normal = (x.detach() - mean) * scale
    weights, biases = [list((g).split([5, 3])) for g in (sent * normal, sent)]
    sums = [[part.sum(0) for part in parts] for parts in (weights, biases)]
    factor, addend = batch_norm_gradients(*sums, weight, variance, 1e-5, 8)
    own = sent * scale * (1 if weight is None else weight)
    torch.testing.assert_close(own + factor * normal + addend, x.grad)
