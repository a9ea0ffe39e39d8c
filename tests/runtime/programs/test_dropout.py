"""Dropout on a CPU gives what eager PyTorch gives."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from situate.runtime.programs.dropout import dropout, dropout_backward  # noqa: E402

SHARES = [0.021, 0.039, 0.1, 0.15, 0.3, 0.5, 0.7, 1.0]


@pytest.mark.parametrize("p", SHARES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_result_and_gradient_are_equal_to_the_last_bit(dtype, p):
    x = torch.randn(500, dtype=dtype, requires_grad=True)
    gradient = torch.randn(500, dtype=dtype)
    torch.manual_seed(0)
    expected = F.dropout(x, p)
    expected.backward(gradient)
    torch.manual_seed(0)
    result, mask = dropout(x.detach(), p, True)
    assert torch.equal(result, expected)
    assert torch.equal(dropout_backward(gradient, mask, 1 / (1 - p) if p < 1 else 0.0), x.grad)


def test_the_result_is_laid_out_as_the_input():
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    result, mask = dropout(x, 0.1, True)
    assert result.stride() == mask.stride() == x.stride()
    assert dropout_backward(x, mask, 1 / 0.9).stride() == x.stride()


@pytest.mark.parametrize("train", [True, False])
def test_nothing_is_dropped_with_p_of_0_or_in_inference(train):
    x = torch.randn(50)
    assert torch.equal(dropout(x, 0.0 if train else 0.5, train)[0], x)
