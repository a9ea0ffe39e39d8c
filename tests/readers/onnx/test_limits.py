"""Bounds on what an ONNX model may stand for."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.errors import ReadError
from situate.readers.onnx.infer import infer
from situate.readers.onnx.shapes import Info, Shapes
from tests.readers.models import loaded, model, node, value, whole

NEW_AXES = node("Unsqueeze", "x w", "y")


def functions(count: int, calls: int) -> Any:
    """A model with a chain of functions, each of so many calls of the next."""
    made = loaded(model([node("F0", "x", "y", domain="my")], [value("x", [1])], [value("y", [1])]))
    for i in range(count):
        function = made.functions.add(domain="my", name=f"F{i}", input=["v0"], output=[f"v{calls}"])
        kind, domain = ("Relu", "") if i == count - 1 else (f"F{i + 1}", "my")
        function.node.extend(node(kind, f"v{j}", f"v{j + 1}", domain=domain) for j in range(calls))
    return made


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (functions(30, 3), "its functions stand for more than 250,000 nodes"),
        (functions(100, 1), "function 'F0': calls itself, or others more than 32 deep"),
    ],
)
def test_functions_without_end_are_an_error(made, message):
    with pytest.raises(ReadError, match=message):
        infer(made, {})


@pytest.mark.parametrize(
    ("made", "rank"),
    [
        (model([node("Relu", "x", "y")], [value("x", [1] * 65)], [value("y", None)]), 65),
        (model([NEW_AXES], [value("x", [2])], [value("y", None)], [whole("w", *range(99))]), 100),
    ],
)
def test_a_value_of_too_many_dimensions_is_named(made, rank):
    with pytest.raises(ReadError, match=f"value '[xy]': has {rank} dimensions, more than 64"):
        infer(loaded(made), {})


def test_a_tensor_too_large_for_a_graph_is_named():
    made = loaded(model([node("Reshape", "x w", "y")], [value("x", [2])], [value("y", None)]))
    made.graph.initializer.add(name="w", data_type=TensorProto.INT64, dims=[2**62])
    with pytest.raises(ReadError, match=r"tensor 'w': is larger than 2\^53"):
        infer(made, {})


def doublings(count: int) -> Any:
    """A model that joins the shape of `x` to itself so often."""
    nodes = [node("Shape", "x", "v0")]
    nodes += [node("Concat", f"v{i} v{i}", f"v{i + 1}", axis=0) for i in range(count)]
    last = value(f"v{count}", None, TensorProto.INT64)
    return loaded(model(nodes, [value("x", [2, 3, 4, 5])], [last]))


@pytest.mark.parametrize("count", [3, 28])
def test_a_vector_joined_to_itself_is_as_long_as_it_says(count):
    """Its content, which would be gigabytes, is not followed."""
    found = Shapes.of(infer(doublings(count), {}).graph)
    assert found.get(f"v{count}") == Info((4 * 2**count,), "int64")
