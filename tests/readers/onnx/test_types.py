"""Types of ONNX values."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, TypeProto, helper

from situate.errors import ReadError
from situate.readers.onnx.types import (
    Info,
    Shapes,
    check_rank,
    collection,
    element,
    shape_of,
    tensor,
    tensor_info,
)
from tests.readers.models import graph, value, weight


@pytest.mark.parametrize("shape", [None, (), (2, None, 0)])
def test_the_shape_of_a_type(shape):
    assert shape_of(tensor(1, shape)) == shape


def test_a_named_and_a_negative_dimension_have_no_number():
    kind = tensor(1, (2, None))
    kind.tensor_type.shape.dim[0].dim_value = -2
    kind.tensor_type.shape.dim[1].dim_param = "n"
    assert shape_of(kind) == (None, None)


def test_of_what_is_not_known_nothing_is_known():
    assert (shape_of(None), element(None), collection(None), collection(TypeProto())) == (
        *(None, 0, None),
        None,
    )


def test_what_is_no_tensor():
    numbers = tensor(1, None)
    maps = helper.make_map_type_proto(7, numbers)
    kinds = [numbers, maps, helper.make_optional_type_proto(numbers)]
    kinds += [helper.make_sequence_type_proto(kind) for kind in (numbers, maps)]
    assert list(map(collection, kinds)) == [None, "map", "optional", "sequence", "map"]


def test_a_value_has_up_to_64_dimensions():
    check_rank("x", [1] * 64)
    with pytest.raises(ReadError, match="value 'x': has 65 dimensions, more than 64"):
        check_rank("x", [1] * 65)


# Shapes and element types of ONNX values.
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
