"""Types and contents of a graph's values and of those around it."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.readers.onnx.scope import Scope
from situate.readers.onnx.types import shape_of, tensor
from tests.readers.models import graph, scalar, weight, whole


def holding(*constants: object) -> Scope:
    scope = Scope()
    scope.hold(graph([], [], [], constants))
    return scope


def test_a_body_sees_what_is_around_it_and_hides_what_has_the_name_of_its_own():
    outer = holding(scalar("n", 5), scalar("m", 6))
    inner = outer.inner()
    inner.bind("n", tensor(1, (2,)))
    assert (inner.number("n"), inner.number("m")) == (None, 6)
    assert (outer.number("n"), shape_of(inner.types["n"])) == (5, (2,))


def test_contents_of_small_constants_are_known():
    scope = holding(whole("w", 3, 4), weight("large", 2000))
    assert scope.content("w") is not None
    assert scope.content("large") is None
    assert shape_of(scope.types["large"]) == (2000,)


@pytest.mark.parametrize("numbers", [(), (1, 2)])
def test_a_number_is_one(numbers):
    assert holding(whole("w", *numbers)).number("w") is None


@pytest.mark.parametrize(
    "damaged",
    [
        TensorProto(name="w", data_type=7, dims=[2]),
        TensorProto(name="w", data_type=7, dims=[2], raw_data=b"abc"),
        TensorProto(name="w", dims=[]),
    ],
)
def test_a_damaged_constant_has_a_type_and_no_content(damaged):
    scope = holding(damaged)
    assert scope.content("w") is None
    assert "w" in scope.types
