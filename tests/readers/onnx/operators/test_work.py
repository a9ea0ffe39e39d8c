"""Traffic and types of ONNX ops, against figures worked out by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from situate.readers.onnx.operators.work import dtype, work
from situate.readers.onnx.shapes import Info, Shapes
from tests.readers.models import node

SHAPES = {
    "image": (2, 3, 8, 8),
    "filter": (4, 3, 3, 3),
    "features": (2, 4, 8, 8),
    "table": (50000, 16),
    "ids": (2, 3),
    "rows": (2, 3, 16),
}


def figures(made) -> tuple[int, int]:
    return work(made, Shapes({name: Info(shape, "float32") for name, shape in SHAPES.items()}))


def test_traffic_is_what_goes_in_and_out():
    assert figures(node("Conv", "image filter", "features"))[1] == 4 * (384 + 108 + 512)


@pytest.mark.parametrize("kind", ["Reshape", "Shape", "Identity"])
def test_a_view_costs_nothing(kind):
    assert figures(node(kind, "image", "image")) == (0, 0)


def test_a_gather_reads_the_rows_it_takes_and_no_more():
    assert figures(node("Gather", "table ids", "rows"))[1] == 4 * (2 * 96 + 6)


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
