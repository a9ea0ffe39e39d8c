"""FLOPs of products, against PyTorch's own formulas where it has them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.flop_counter import flop_registry

from situate.readers.products import PRODUCTS

SIDES = [1, 1], [0, 0], [1, 1]
CASES = {
    "mm": ((2, 3), (3, 5)),
    "bmm": ((7, 2, 3), (7, 3, 5)),
    "addmm": ((5,), (2, 3), (3, 5)),
    "baddbmm": ((7, 2, 5), (7, 2, 3), (7, 3, 5)),
    "_scaled_mm": ((2, 3), (3, 5), (1,), (1,)),
    "convolution": ((4, 6, 8, 8), (10, 3, 3, 3), None, *SIDES, False, [0, 0], 2),
    "_convolution": ((4, 6, 8, 8), (6, 5, 3, 3), None, *SIDES, True, [0, 0], 2),
    "convolution_backward": (
        *((4, 10, 6, 6), (4, 6, 8, 8), (10, 6, 3, 3), None),
        *(*SIDES, False, [0, 0], 1, [True, True, False]),
    ),
}
OUTPUT_SHAPES = {"convolution": (4, 10, 6, 6), "_convolution": (4, 10, 10, 10)}


def tensors(arguments: tuple) -> list:
    return [torch.empty(x, device="meta") if isinstance(x, tuple) else x for x in arguments]


@pytest.mark.parametrize("name", CASES)
def test_where_pytorch_has_a_formula_it_counts_the_same(name):
    inputs = tensors(CASES[name])
    result = torch.empty(OUTPUT_SHAPES.get(name, ()), device="meta")
    if name == "convolution_backward":
        result = (inputs[1], inputs[2], None)
    own = PRODUCTS[name](*inputs, out_val=result)
    assert own == flop_registry[getattr(torch.ops.aten, name)](*inputs, out_val=result) > 0
