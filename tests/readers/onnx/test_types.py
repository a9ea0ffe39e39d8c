"""Types of ONNX values."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TypeProto, helper

from situate.errors import ReadError
from situate.readers.onnx.types import check_rank, collection, element, shape_of, tensor


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
