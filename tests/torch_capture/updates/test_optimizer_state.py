"""The tensors that optimisers keep for each parameter."""

from __future__ import annotations

import pytest

from situate.torch_capture.updates.optimizer_state import is_8bit, state_bytes, state_tensors


@pytest.mark.parametrize(
    ("kind", "itemsize", "nbytes"),
    [
        ("sgd", 4, 0),
        ("momentum", 4, 4 * 8192),
        ("adamw", 4, 8 * 8192),
        ("adamw", 2, 4 * 8192),
        ("adamw-bf16", 4, 4 * 8192),
        ("adamw8bit", 4, 2 * (8192 + 4 * 32)),
        ("adafactor", 4, 4 * (64 + 128)),
    ],
)
def test_the_bytes_of_a_matrix(kind: str, itemsize: int, nbytes: int) -> None:
    assert state_bytes(kind, (64, 128), itemsize) == nbytes


def test_adafactor_has_no_factors_of_a_vector() -> None:
    [variance] = state_tensors("adafactor", (5,))
    assert (variance.name, variance.shape) == ("variance", (5,))


@pytest.mark.parametrize(
    ("shape", "expected"), [((4096,), True), ((4095,), False), ((4097,), False), ((3, 256), False)]
)
def test_small_and_broken_blocks_keep_their_type(shape: tuple[int, ...], expected: bool) -> None:
    assert is_8bit(shape) is expected
    names = {tensor.name for tensor in state_tensors("adamw8bit", shape)}
    assert ("exp_avg_codes" in names) is expected
