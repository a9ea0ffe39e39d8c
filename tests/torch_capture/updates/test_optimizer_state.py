"""The tensors that optimisers keep for each parameter."""

from __future__ import annotations

import pytest

from situate.torch_capture.updates.optimizer_state import (
    is_8bit,
    state_bytes,
    state_tensors,
    update_flops,
)


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
        ("muon", 4, 4 * 8192),
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


# Muon: matrices have one moment and products, other parameters are AdamW's.
def test_muon_leaves_other_parameters_to_adamw() -> None:
    assert state_tensors("muon", (5,)) == state_tensors("adamw", (5,))
    assert state_tensors("muon", (5, 2, 2)) == state_tensors("adamw", (5, 2, 2))


def test_muon_multiplies_matrices() -> None:
    assert update_flops("muon", (128,)) == update_flops("adamw", (128,)) == 14 * 128
    products = 5 * (4 * 64 * 64 * 128 + 2 * 64**3)
    for shape in ((64, 128), (128, 64)):
        assert update_flops("muon", shape) == products + 14 * 64 * 128
