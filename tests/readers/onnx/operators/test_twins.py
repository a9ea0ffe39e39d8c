"""Operators of ONNX Runtime make the same outputs as their standard twins."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from tests.readers.onnx.operators.test_contrib import Q, outputs_of

POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
LAST = {"channels_last": 1}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shape"),
    [
        ("QLinearAdd", f"u2,3,4 {Q} u4 {Q} {Q}", {}, (2, 3, 4)),
        ("QLinearMul", f"u2,1,4 {Q} u3,1 {Q} {Q}", {}, (2, 3, 4)),
        ("QLinearWhere", f"b2,1 u3 {Q} u2,3 {Q} {Q}", {}, (2, 3)),
        ("QLinearConcat", f"{Q} u2,3 {Q} u2,5 {Q}", {"axis": 1}, (2, 8)),
        ("QLinearReduceMean", f"u2,3,4 {Q} {Q}", {"axes": [1], "keepdims": 0}, (2, 4)),
        ("QLinearAveragePool", f"u2,4,8,8 {Q} {Q}", POOL, (2, 4, 4, 4)),
        ("QLinearAveragePool", f"u2,4,9,9 {Q} {Q}", {**POOL, "ceil_mode": 1}, (2, 4, 5, 5)),
        ("QLinearAveragePool", f"u2,8,8,4 {Q} {Q}", {**POOL, **LAST}, (2, 4, 4, 4)),
        ("QLinearGlobalAveragePool", f"u2,4,8,8 {Q} {Q}", {}, (2, 4, 1, 1)),
        ("QLinearGlobalAveragePool", f"u2,8,8,4 {Q} {Q}", LAST, (2, 1, 1, 4)),
        ("QLinearConv", f"u1,4,8,8 {Q} u6,4,3,3 {Q} {Q}", {}, (1, 6, 6, 6)),
        ("QLinearConv", f"u1,8,8,4 {Q} u6,4,3,3 {Q} {Q}", LAST, (1, 6, 6, 6)),
        ("FusedConv", "f1,4,8,8 f6,4,3,3 f6", {"activation": "Relu"}, (1, 6, 6, 6)),
        ("NhwcConv", "h1,8,8,4 h6,4,3,3", {"pads": [1] * 4}, (1, 8, 8, 6)),
        ("NhwcMaxPool", "u1,8,8,4", POOL, (1, 4, 4, 4)),
        ("FusedGemm", "f4,5 f4,6 f6", {"transA": 1, "activation": "Relu"}, (5, 6)),
        ("FusedMatMul", "f2,3,4,5 f2,3,6,5", {"transB": 1, "alpha": 0.5}, (2, 3, 4, 6)),
        ("FusedMatMul", "f4,2,3,5 f2,3,5,6", {"transBatchA": 1}, (2, 3, 4, 6)),
        ("FusedMatMul", "f5,2,3,4 f2,3,5,6", {"transA": 1, "transBatchA": 1}, (2, 3, 4, 6)),
        ("FusedMatMul", "f2,3,4,5 f6,2,3,5", {"transB": 1, "transBatchB": 1}, (2, 3, 4, 6)),
        ("DynamicQuantizeMatMul", "f2,5,4 s4,6 f s", {}, (2, 5, 6)),
        ("MatMulIntegerToFloat", "u2,5,4 s4,6 f f", {}, (2, 5, 6)),
        ("GemmFloat8", "f5,4 f6,4", {"transB": 1, "dtype": 10}, (5, 6)),
        ("GridSample", "f1,2,4,4 f1,3,5,2", {}, (1, 2, 3, 5)),
    ],
)
def test_the_shape_is_that_of_the_twin(op, inputs, attributes, shape):
    assert [result for result, _ in outputs_of(op, inputs, **attributes)] == [shape]


def test_all_outputs_of_a_recurrent_layer():
    inputs = "f5,2,8 s1,8,64 s1,16,64 f1,128 - - - - f1 s1 f1 s1"
    results = [shape for shape, _ in outputs_of("DynamicQuantizeLSTM", inputs, 3, hidden_size=16)]
    assert results == [(5, 1, 2, 16), (1, 2, 16), (1, 2, 16)]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "dtype"),
    [
        ("QLinearAdd", f"s2 {Q} s2 {Q} {Q}", {}, "int8"),
        ("QLinearConcat", f"{Q} s2,3 {Q}", {"axis": 1}, "int8"),
        ("QLinearWhere", f"b2 s2 {Q} s2 {Q} {Q}", {}, "int8"),
        ("MatMulIntegerToFloat", "u2,4 s4,6 h h", {}, "float16"),
        ("DynamicQuantizeMatMul", "f2,4 s4,6 f", {}, "float32"),
        ("GemmFloat8", "f5,4 f4,6", {"dtype": 10}, "float16"),
    ],
)
def test_the_type_is_its_own(op, inputs, attributes, dtype):
    assert [result for _, result in outputs_of(op, inputs, **attributes)] == [dtype]
