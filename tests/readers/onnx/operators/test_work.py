"""Traffic and types of ONNX ops, against figures worked out by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from situate.readers import onnx
from situate.readers.onnx.operators.work import dtype, flops, work
from situate.readers.onnx.types import Info, Shapes
from tests.readers.models import node
from tests.readers.onnx.operators.test_contrib import Q, model_of

SHAPES = {
    "image": (2, 3, 8, 8),
    "filter": (4, 3, 3, 3),
    "features": (2, 4, 8, 8),
    "table": (50000, 16),
    "ids": (2, 3),
    "rows": (2, 3, 16),
}


def figures(op) -> tuple[int, int]:
    return work(op, Shapes({name: Info(shape, "float32") for name, shape in SHAPES.items()}))


def test_traffic_is_what_goes_in_and_out():
    assert figures(node("Conv", "image filter", "features"))[1] == 4 * (384 + 108 + 512)


@pytest.mark.parametrize("kind", ["Reshape", "Shape", "Identity"])
def test_a_view_costs_nothing(kind):
    assert figures(node(kind, "image", "image")) == (0, 0)


def test_a_gather_reads_the_rows_it_takes_and_no_more():
    assert figures(node("Gather", "table ids", "rows"))[1] == 4 * (2 * 96 + 6)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (node("MatMulInteger", "bytes more", "whole"), "uint8"),
        (node("ConvInteger", "bytes more", "whole"), "uint8"),
        (node("MatMulIntegerToFloat", "bytes more", "single"), "uint8"),
        (node("QLinearMatMul", "bytes s z more s z s z", "bytes"), "uint8"),
        (node("QGemm", "bytes s z more s z", "single"), "uint8"),
        (node("DynamicQuantizeMatMul", "single more s", "single"), "int8"),
        (node("GemmFloat8", "float8 float8", "half"), "float8e4m3fn"),
        (node("MatMulNBits", "half bytes s", "half"), "float16"),
        (node("Cast", "bytes", "half"), "float16"),
        (node("MatMulInteger", "", "whole"), "int32"),
        (node("Print", "bytes", ""), "float32"),
    ],
)
def test_the_dtype_of_a_quantised_product_is_that_of_its_factors(op, expected: str):
    dtypes = {
        "bytes": "uint8",
        "more": "int8",
        "whole": "int32",
        "single": "float32",
        "half": "float16",
        "float8": "float8e4m3fn",
    }
    infos = {name: Info((4, 4), dtype) for name, dtype in dtypes.items()}
    assert dtype(op, Shapes(infos)) == expected


# FLOPs of ONNX ops, against figures worked out by hand.
FLOP_SHAPES = {
    "image": (2, 3, 8, 8),
    "filter": (4, 3, 3, 3),
    "features": (2, 4, 8, 8),
    "up": (4, 5, 2, 2),
    "wide": (2, 5, 16, 16),
    "a": (6, 5, 4),
    "b": (6, 4, 7),
    "ab": (6, 5, 7),
    "column": (4, 5),
    "matrix": (4, 7),
    "product": (5, 7),
    "steps": (10, 2, 8),
    "gates": (1, 64, 8),
    "recurrence": (1, 64, 16),
    "inward": (1, 8, 64),
    "inner": (1, 16, 64),
    "states": (10, 1, 2, 16),
    "ids": (2, 3),
    "query": (2, 4, 10, 16),
    "keys": (2, 4, 20, 16),
    "pooled": (2, 4, 4, 4),
    "average": (2, 4, 1, 1),
}


def count(op) -> int:
    values = [
        [Info(FLOP_SHAPES.get(name, (0,)), "float32") for name in names]
        for names in (op.input, op.output)
    ]
    return flops(op, *values)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (node("Conv", "image filter", "features"), 2 * 512 * 27),
        (node("ConvTranspose", "features up", "wide"), 2 * 512 * 20),
        (node("MatMul", "a b", "ab"), 2 * 210 * 4),
        (node("Gemm", "column matrix", "product", transA=1), 2 * 35 * 4),
        (node("Einsum", "a b", "ab", equation="bij,bjk->bik"), 2 * 6 * 5 * 4 * 7),
        (node("Einsum", "a b", "ab", equation="...ij,...jk->...ik"), 2 * 6 * 5 * 4 * 7),
        (node("LSTM", "steps gates recurrence", "states"), 2 * 20 * 64 * (8 + 16)),
        (node("DynamicQuantizeLSTM", "steps inward inner", "states"), 2 * 20 * 64 * (8 + 16)),
        (node("Attention", "query keys keys", "query"), 4 * 2 * 4 * 10 * 16 * 20),
        (node("MaxPool", "features", "pooled", kernel_shape=[2, 2]), 128 * 4),
        (node("GlobalAveragePool", "features", "average"), 512),
        (node("GlobalLpPool", "features", "average"), 512),
        (node("ReduceL2", "features", "average"), 512),
        (node("ReduceLogSumExp", "features", "average"), 512),
        (node("Relu", "image", "image"), 384),
    ],
)
def test_flops(op, expected):
    assert count(op) == expected


@pytest.mark.parametrize(
    "kind", ["QGemm", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulBnb4", "GemmFloat8"]
)
def test_a_quantised_product_takes_as_much_as_any(kind):
    assert count(node(kind, "column matrix", "product", transA=1)) == 2 * 35 * 4


@pytest.mark.parametrize(
    "op",
    [
        node("Conv", "image", "features"),
        node("MatMul", "", "ab"),
        node("LSTM", "", ""),
        node("LSTM", "ids ids ids", "states"),
        node("Einsum", "a", "ab"),
    ],
)
def test_a_node_that_lacks_inputs_or_dimensions_crashes_nothing(op):
    assert count(op) >= 0


POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "expected"),
    [
        ("QLinearConv", f"u1,4,8,8 {Q} u6,4,3,3 {Q} {Q}", {}, 2 * 6 * 36 * 4 * 9),
        ("NhwcConv", "h1,8,8,4 h6,4,3,3", {}, 2 * 6 * 36 * 4 * 9),
        ("FusedConv", "f1,4,8,8 f6,2,3,3", {"group": 2}, 2 * 6 * 36 * 2 * 9),
        ("QLinearAveragePool", f"u2,4,8,8 {Q} {Q}", POOL, 2 * 4 * 16 * 4),
        ("NhwcMaxPool", "u2,8,8,4", POOL, 2 * 4 * 16 * 4),
        ("QLinearGlobalAveragePool", f"u2,4,8,8 {Q} {Q}", {}, 2 * 4 * 64),
        ("QLinearReduceMean", f"u2,3,4 {Q} {Q}", {"axes": [1]}, 24),
        ("QLinearAdd", f"u2,3,4 {Q} u4 {Q} {Q}", {}, 24),
        ("QLinearConcat", f"{Q} u2,3 {Q} u2,5 {Q}", {"axis": 1}, 16),
        ("QGemm", f"u5,4 {Q} u4,6 {Q}", {}, 2 * 30 * 4),
        ("FusedMatMul", "f2,3,5,4 f2,3,5,6", {"transA": 1}, 2 * 2 * 3 * 24 * 5),
        ("FusedMatMul", "f4,2,3,5 f2,3,5,6", {"transBatchA": 1}, 2 * 2 * 3 * 24 * 5),
        (
            "FusedMatMul",
            "f5,2,3,4 f2,3,5,6",
            {"transA": 1, "transBatchA": 1},
            2 * 2 * 3 * 24 * 5,
        ),
        ("MatMulNBits", "h2,5,32 u12,2,8 h24", {"N": 12, "K": 32}, 2 * 2 * 5 * 12 * 32),
        ("Attention", "f2,5,8 f8,24", {"num_heads": 2}, 2 * 10 * 8 * 24 + 4 * 2 * 5 * 5 * 8),
        ("MoE", "f5,8 f5,3 f3,16,8 - f3,8,16", {"k": 2}, 2 * 5 * 2 * (16 * 8 + 8 * 16)),
        (
            "QMoE",
            "f5,8 f5,3 u3,16,4 f3,16 - u3,8,8 f3,8",
            {"k": 1, "expert_weight_bits": 4},
            2 * 5 * 1 * (16 * 8 + 8 * 16),
        ),
        ("SkipLayerNormalization", "f2,5,8 f2,5,8 f8", {}, 80),
        ("FastGelu", "h2,3", {}, 6),
    ],
)
def test_an_operator_of_onnx_runtime_takes_as_much_as_its_standard_twin(
    op, inputs, attributes, expected
):
    assert onnx.read(model_of(op, inputs, **attributes), "").ops[-1].flops == expected


# FLOPs of attention, for every layout of queries, keys and values.
CONTRIB = "com.microsoft"

ATTENTION_SHAPES = {
    "hidden": (2, 10, 64),
    "one": (2, 1, 64),
    "some": (2, 20, 64),
    "few": (2, 10, 16),
    "one_few": (2, 1, 16),
    "packed": (2, 10, 96),
    "packed_all": (2, 10, 8, 3, 8),
    "packed_keys": (2, 20, 8, 2, 8),
    "past": (2, 8, 511, 8),
    "past_few": (2, 2, 511, 8),
    "none": (2, 2, 0, 8),
    "past_both": (2, 2, 8, 511, 8),
    "projection": (64, 192),
    "queries": (2, 8, 10, 8),
    "keys_few": (2, 2, 20, 8),
    "values_few": (2, 2, 20, 32),
    "wide": (2, 8, 10, 32),
}

ONE_KEY = 4 * 2 * 64
"""FLOPs of a query of 64 numbers and one key, in both sequences."""


def attention_work(kind, inputs, output, **attributes):
    op = node(kind, inputs, output, **attributes)
    return work(
        op, Shapes({name: Info(shape, "float32") for name, shape in ATTENTION_SHAPES.items()})
    )


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "flops"),
    [
        ("MultiHeadAttention", "hidden some some", "hidden", ONE_KEY * 10 * 20),
        ("MultiHeadAttention", "one one one - - - past past", "one", ONE_KEY * 512),
        ("MultiHeadAttention", "packed_all", "hidden", ONE_KEY * 10 * 10),
        ("MultiHeadAttention", "hidden packed_keys", "hidden", ONE_KEY * 10 * 20),
        ("GroupQueryAttention", "one one_few one_few past_few past_few", "one", ONE_KEY * 512),
        ("GroupQueryAttention", "packed - - none none", "hidden", ONE_KEY * 10 * 10),
        ("GroupQueryAttention", "packed - - past_few past_few", "hidden", ONE_KEY * 10 * 521),
    ],
)
def test_every_query_meets_every_key_those_of_the_past_too(kind, inputs, output, flops):
    assert attention_work(kind, inputs, output, domain=CONTRIB)[0] == flops


def test_values_may_be_wider_than_keys():
    result, _ = attention_work("Attention", "queries keys_few values_few", "wide")
    assert result == 2 * 2 * 8 * 10 * 20 * (8 + 32)


def test_the_standard_one_has_a_past_too():
    result, _ = attention_work("Attention", "queries queries queries - past past", "queries")
    assert result == ONE_KEY * 10 * 521


@pytest.mark.parametrize(
    ("kind", "past"), [("Attention", "- - past_both"), ("QAttention", "- - - - - - past_both")]
)
def test_one_that_projects_its_input_counts_that(kind, past):
    projection = 2 * 2 * 10 * 64 * 192
    result, _ = attention_work(kind, "hidden projection", "hidden", domain=CONTRIB)
    assert result == projection + ONE_KEY * 10 * 10
    result, _ = attention_work(kind, f"hidden projection {past}", "hidden", domain=CONTRIB)
    assert result == projection + ONE_KEY * 10 * 521


def test_an_input_that_is_left_out_moves_no_bytes():
    figure = attention_work("GroupQueryAttention", "packed - - none none", "hidden", domain=CONTRIB)
    assert figure[1] == 4 * 2 * 10 * (96 + 64)


@pytest.mark.parametrize("inputs", ["", "hidden", "- hidden hidden"])
def test_one_that_lacks_inputs_crashes_nothing(inputs):
    assert attention_work("GroupQueryAttention", inputs, "hidden", domain=CONTRIB)[0] >= 0
