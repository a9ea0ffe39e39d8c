"""Shapes of what the attention operators of ONNX Runtime make."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from tests.readers.onnx.operators.test_contrib import made

TWO = {"num_heads": 2}
OUT = (2, 5, 8)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shapes"),
    [
        ("Attention", "f2,5,8 f8,24 f24", TWO, [OUT]),
        ("Attention", "f2,5,6 f6,28 f28", {**TWO, "qkv_hidden_sizes": [8, 8, 12]}, [(2, 5, 12)]),
        ("Attention", "f2,5,8 f8,24 f24 - f2,2,2,3,4", TWO, [OUT, (2, 2, 2, 8, 4)]),
        ("QAttention", "u2,5,8 s8,24 f24 f f - u s", TWO, [OUT]),
        ("QAttention", "u2,5,8 s8,24 f24 f f - u s f2,2,2,3,4", TWO, [OUT, (2, 2, 2, 8, 4)]),
        ("MultiHeadAttention", "f2,5,8 f2,7,8 f2,7,12", TWO, [(2, 5, 12)]),
        ("MultiHeadAttention", "f2,5,8 f2,2,7,4 f2,2,7,4", TWO, [OUT]),
        ("MultiHeadAttention", "f2,5,8 f2,7,2,2,4", TWO, [OUT]),
        ("MultiHeadAttention", "f2,5,2,3,4", TWO, [OUT]),
        (
            "MultiHeadAttention",
            "f2,5,8 f2,5,8 f2,5,8 - - - f2,2,3,4 f2,2,3,4",
            TWO,
            [OUT, (2, 2, 8, 4), (2, 2, 8, 4)],
        ),
        (
            "DecoderMaskedMultiHeadAttention",
            "f2,1,8 f2,1,8 f2,1,8 - - f2,2,9,4 f2,2,9,4 i1",
            {**TWO, "past_present_share_buffer": 1},
            [(2, 1, 8), (2, 2, 9, 4), (2, 2, 9, 4)],
        ),
        (
            "GroupQueryAttention",
            "f2,1,32 f2,1,16 f2,1,16 f2,2,9,8 f2,2,9,8 i2 i1",
            {"num_heads": 4, "kv_num_heads": 2},
            [(2, 1, 32), (2, 2, 10, 8), (2, 2, 10, 8)],
        ),
        (
            "GroupQueryAttention",
            "f2,5,64 - - - - i2 i1",
            {"num_heads": 4, "kv_num_heads": 2},
            [(2, 5, 32), (2, 2, 5, 8), (2, 2, 5, 8)],
        ),
    ],
)
def test_results_and_the_keys_and_values_that_are_kept(op, inputs, attributes, shapes):
    assert [shape for shape, _ in made(op, inputs, len(shapes), **attributes)] == shapes


def test_an_attention_of_quantised_numbers_makes_real_ones():
    assert made("QAttention", "u2,5,8 s8,24 f24 h f - u s", **TWO) == [(OUT, "float16")]
