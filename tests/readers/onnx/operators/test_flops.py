"""FLOPs of ONNX ops, against figures worked out by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from situate.readers import onnx
from situate.readers.onnx.operators.flops import flops
from situate.readers.onnx.shapes import Info
from tests.readers.models import node
from tests.readers.onnx.operators.test_contrib import Q, model_of

SHAPES = {
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


def count(made) -> int:
    values = [
        [Info(SHAPES.get(name, (0,)), "float32") for name in names]
        for names in (made.input, made.output)
    ]
    return flops(made, *values)


@pytest.mark.parametrize(
    ("made", "expected"),
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
def test_flops(made, expected):
    assert count(made) == expected


@pytest.mark.parametrize(
    "kind", ["QGemm", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulBnb4", "GemmFloat8"]
)
def test_a_quantised_product_takes_as_much_as_any(kind):
    assert count(node(kind, "column matrix", "product", transA=1)) == 2 * 35 * 4


@pytest.mark.parametrize(
    "made",
    [
        node("Conv", "image", "features"),
        node("MatMul", "", "ab"),
        node("LSTM", "", ""),
        node("LSTM", "ids ids ids", "states"),
        node("Einsum", "a", "ab"),
    ],
)
def test_a_node_that_lacks_inputs_or_dimensions_crashes_nothing(made):
    assert count(made) >= 0


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
