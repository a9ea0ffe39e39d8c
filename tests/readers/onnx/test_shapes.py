"""Shapes and element types of ONNX values."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.errors import ReadError
from situate.readers.onnx.shapes import Info, Shapes, tensor_info
from tests.readers.models import graph, value, weight


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float32", 40),
        ("float16", 20),
        ("bfloat16", 20),
        ("double", 10),
        ("float64", 80),
        ("float8e4m3fn", 10),
        ("int4", 5),
        ("uint8", 10),
        ("bool", 10),
        ("string", 80),
        ("complex64", 80),
    ],
)
def test_bytes_of_an_element_type(dtype, size):
    assert Info((2, 5), dtype).bytes == size


def test_bytes_round_up_and_never_overflow():
    assert Info((3,), "int4").bytes == 2
    assert Info((2**62, 2**62), "int8").bytes == 2**124


def test_a_body_sees_the_graph_around_it():
    outer = Shapes.of(graph([], [value("x", [2])], []))
    inner = Shapes.of(graph([], [value("y", [3])], []), outer)
    assert inner.get("x") == Info((2,), "float32")
    assert inner.get("y") == Info((3,), "float32")
    assert inner.get("z") is None


def test_types_have_the_names_that_everybody_uses():
    kinds = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT64]
    shapes = Shapes.of(graph([], [value(str(kind), [1], kind) for kind in kinds], []))
    names = [info.dtype for info in shapes.values.values()]
    assert names == ["float32", "float64", "float16", "int64"]


def test_a_negative_dimension_of_a_weight_is_named():
    tensor = weight("w", 2, 2)
    tensor.dims[0] = -2
    with pytest.raises(ReadError, match=r"tensor 'w': has a negative dimension: \[-2, 2\]"):
        tensor_info(tensor)
