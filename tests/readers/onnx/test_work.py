"""FLOPs and traffic of ONNX ops, against figures worked out by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from situate.readers.onnx.shapes import Info, Shapes
from situate.readers.onnx.work import dtype, work
from tests.readers.models import node

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
    "table": (50000, 16),
    "ids": (2, 3),
    "rows": (2, 3, 16),
    "query": (2, 4, 10, 16),
    "keys": (2, 4, 20, 16),
    "pooled": (2, 4, 4, 4),
    "average": (2, 4, 1, 1),
}


def figures(made) -> tuple[int, int]:
    return work(made, Shapes({name: Info(shape, "float32") for name, shape in SHAPES.items()}))


@pytest.mark.parametrize(
    ("made", "flops"),
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
        (node("Reshape", "image", "image"), 0),
        (node("Shape", "image", "ids"), 0),
    ],
)
def test_flops(made, flops):
    assert figures(made)[0] == flops


@pytest.mark.parametrize(
    "kind", ["QGemm", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulBnb4", "GemmFloat8"]
)
def test_a_quantised_product_takes_as_much_as_any(kind):
    assert figures(node(kind, "column matrix", "product", transA=1))[0] == 2 * 35 * 4


def test_traffic_is_what_goes_in_and_out():
    assert figures(node("Conv", "image filter", "features"))[1] == 4 * (384 + 108 + 512)


def test_a_gather_reads_the_rows_it_takes_and_no_more():
    assert figures(node("Gather", "table ids", "rows"))[1] == 4 * (2 * 96 + 6)


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
    assert figures(made)[0] >= 0


@pytest.mark.parametrize(
    ("made", "expected"),
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
def test_the_dtype_of_a_quantised_product_is_that_of_its_factors(made, expected: str):
    dtypes = {
        "bytes": "uint8",
        "more": "int8",
        "whole": "int32",
        "single": "float32",
        "half": "float16",
        "float8": "float8e4m3fn",
    }
    infos = {name: Info((4, 4), dtype) for name, dtype in dtypes.items()}
    assert dtype(made, Shapes(infos)) == expected
