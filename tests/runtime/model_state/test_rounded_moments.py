"""AdamW with moments in bfloat16 and in 8 bits."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.model_state import rounded_moments  # noqa: E402
from situate.runtime.model_state.optimizers import default_optimizer  # noqa: E402
from situate.runtime.model_state.rounded_moments import (  # noqa: E402
    AdamW8bit,
    AdamWBf16,
    dequantized,
    quantize,
    update_rounded,
)


def codes_of(numbers: Any, *, signed: bool) -> tuple[Any, Any]:
    codes = torch.zeros(numbers.shape, dtype=torch.uint8)
    scale = torch.zeros(numbers.numel() // 256)
    quantize(numbers, codes, scale, signed=signed)
    return codes, scale


# Codes of 8 bits.
@pytest.mark.parametrize("signed", [True, False])
def test_a_number_is_near_that_of_its_code(signed: bool) -> None:
    torch.manual_seed(0)
    numbers = torch.randn(32, 256)
    numbers = numbers if signed else numbers.square()
    codes, scale = codes_of(numbers, signed=signed)
    off = (dequantized(codes, scale, signed=signed) - numbers).abs()
    assert (off <= 0.06 * scale.view(-1, 1)).all()
    assert torch.equal(scale, numbers.abs().amax(1))


@pytest.mark.parametrize("signed", [True, False])
def test_the_numbers_of_codes_are_their_own(signed: bool) -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    scale = torch.ones(1)
    again, _ = codes_of(dequantized(codes, scale, signed=signed), signed=signed)
    assert torch.equal(again, codes)


def test_a_block_of_zeros_stays_zero() -> None:
    codes, scale = codes_of(torch.zeros(256), signed=True)
    assert not dequantized(codes, scale, signed=True).any()


# Updates.
def test_moments_are_rounded_after_the_update_has_read_them() -> None:
    parameter, mean, square = torch.ones(2), torch.zeros(2).bfloat16(), torch.zeros(2).bfloat16()

    def update(wide: Any, gradient: Any) -> None:
        wide[1].fill_(1 / 3)
        wide[0].sub_(wide[1])

    update_rounded([parameter, mean, square], torch.ones(2), update)
    assert torch.equal(parameter, torch.ones(2) - torch.full((2,), 1 / 3))
    assert torch.equal(mean, torch.full((2,), 1 / 3).bfloat16())


@pytest.mark.parametrize(("make", "bits"), [(AdamWBf16, 16), (AdamW8bit, 8)])
def test_it_trains_like_adamw(make: Any, bits: int) -> None:
    torch.manual_seed(0)
    start = torch.randn(64, 64)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    optimizers = make([ours], lr=0.01), torch.optim.AdamW([theirs], lr=0.01)
    for _ in range(20):
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = parameter.detach() - 1
            optimizer.step()
    moved = (theirs - start).abs().mean()
    assert 0 < (ours - theirs).abs().mean() < 0.05 * moved
    sizes = [8 * v.itemsize for k, v in optimizers[0].state[ours].items() if v.dim() > 1]
    assert sizes == [bits, bits]


def test_its_state_can_be_saved_and_loaded() -> None:
    parameter = torch.nn.Parameter(torch.ones(64, 64))
    one, other = (default_optimizer("adamw8bit", [parameter]) for _ in range(2))
    parameter.grad = torch.ones(64, 64)
    one.step()
    other.load_state_dict(one.state_dict())
    assert other.state[parameter]["exp_avg_codes"].dtype is torch.uint8
    assert torch.equal(
        one.state[parameter]["exp_avg_scale"], other.state[parameter]["exp_avg_scale"]
    )


def test_the_numbers_of_codes_do_not_depend_on_the_default_type() -> None:
    codes, scale = torch.arange(256, dtype=torch.uint8), torch.ones(1)
    before = dequantized(codes, scale, signed=True)
    rounded_moments._code_values.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        after = dequantized(codes, scale, signed=True)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(before, after)
