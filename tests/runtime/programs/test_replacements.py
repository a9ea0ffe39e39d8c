"""Replacements of operators give the results and layouts of PyTorch's CPU kernels."""

from __future__ import annotations

from typing import Any

import pytest
from torch.nn import functional as F
from torch.utils._pytree import tree_map_only

from situate.runtime.programs.replacements import (
    CPU_ONLY_REPLACEMENTS,
    attention,
    attention_backward,
    dropout,
    dropout_backward,
    lstm,
)
from tests.runtime.gpus import KINDS

torch = pytest.importorskip("torch")


ATEN = torch.ops.aten
FORWARD = ATEN._scaled_dot_product_flash_attention_for_cpu
BACKWARD = ATEN._scaled_dot_product_flash_attention_for_cpu_backward
ROWS, KEYS = 5, 7


def random_tensors(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(size))
    return torch.randn(size, generator=generator).to(dtype)


def by_head(groups: int = 4, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Queries of 4 heads, keys and values of `groups`, each a dense tensor."""
    shapes = ((2, 4, ROWS, 8), (2, groups, KEYS, 8), (2, groups, KEYS, 8))
    return [random_tensors(*shape, dtype=dtype) + k for k, shape in enumerate(shapes)]


def by_row() -> list[torch.Tensor]:
    """The three as a transformer's one projection makes them: parts of rows."""
    joint = random_tensors(2, ROWS, 3 * 32)
    return [part.view(2, ROWS, 4, 8).transpose(1, 2) for part in joint.chunk(3, -1)]


def first_row_masked() -> torch.Tensor:
    mask = random_tensors(ROWS, KEYS)
    mask[0] = -torch.inf
    return mask


CASES: dict[str, tuple[list[torch.Tensor], bool, dict[str, Any]]] = {
    "by head": (by_head(), False, {}),
    "by row": (by_row(), False, {}),
    "causal": (by_row(), True, {}),
    "heads that share keys": (by_head(groups=2), False, {}),
    "a scale": (by_head(), False, {"scale": 0.7}),
    "a mask": (by_head(), False, {"attn_mask": first_row_masked()}),
    "a mask of every head": (by_head(), False, {"attn_mask": random_tensors(2, 4, ROWS, KEYS)}),
    "double": (by_head(dtype=torch.float64), False, {}),
    "bfloat16": (by_head(dtype=torch.bfloat16), False, {}),
}


def on(kind: str, value: Any) -> Any:
    """The same value, tensors of it on a device of that kind."""
    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(kind), value)


# CPU-only operators on any device.
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_attention_is_what_the_kernel_for_cpus_gives(case: str, kind: str) -> None:
    inputs, causal, options = CASES[case]
    expected = FORWARD(*inputs, 0.0, causal, **options)
    result = attention(*on(kind, inputs), 0.0, causal, **on(kind, options))
    for mine, theirs in zip(result, expected, strict=True):
        agree(mine, theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_so_are_its_gradients(case: str, kind: str) -> None:
    inputs, causal, options = CASES[case]
    operator_arguments = FORWARD(*inputs, 0.0, causal, **options)
    arguments = (
        torch.ones_like(operator_arguments[0]) * inputs[0],
        *inputs,
        *operator_arguments,
        0.0,
        causal,
    )
    expected = BACKWARD(*arguments, **options)
    result = attention_backward(*on(kind, arguments), **on(kind, options))
    for mine, theirs in zip(result, expected, strict=True):
        agree(mine, theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_layer_of_an_lstm_is_what_the_kernel_for_cpus_gives(reverse: bool, kind: str) -> None:
    weights = random_tensors(32, 6), random_tensors(32, 8), random_tensors(32), random_tensors(32)
    options = (reverse, [], 2, 8, 1, True, False, False, False)
    arguments = (
        random_tensors(5, 3, 6),
        *weights,
        random_tensors(3, 8),
        random_tensors(3, 8),
        *options,
    )
    expected = ATEN.mkldnn_rnn_layer(*arguments)
    for mine, theirs in zip(lstm(*on(kind, arguments))[:3], expected[:3], strict=True):
        agree(mine, theirs)


def test_every_name_is_an_operator_of_pytorch() -> None:
    assert all(hasattr(ATEN, name.removeprefix("aten::")) for name in CPU_ONLY_REPLACEMENTS)


def agree(mine: torch.Tensor, theirs: torch.Tensor) -> None:
    assert mine.stride() == theirs.stride()
    close = {"rtol": 0.02, "atol": 0.02} if theirs.dtype == torch.bfloat16 else {}
    torch.testing.assert_close(mine.cpu(), theirs, **close)


torch = pytest.importorskip("torch")


SHARES = [0.021, 0.039, 0.1, 0.15, 0.3, 0.5, 0.7, 1.0]


# Dropout as eager PyTorch rounds it.
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
