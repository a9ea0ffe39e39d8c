"""Shapes and element types of ONNX values."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.errors import ReadError
from situate.readers import onnx
from situate.readers.onnx.shapes import MOST_JOINED, Info, Shapes, _joined, infer, tensor_info
from tests.readers.models import graph, loaded, model, node, value, weight, whole


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


@pytest.mark.parametrize("dim", [None, 0, -1])
def test_an_input_without_a_size_is_one_and_warned_of(dim):
    g = onnx.read(model([node("Relu", "x", "y")], [value("x", [dim, 8])], [value("y", None)]), "")
    assert g.tensors[0].size == 32
    assert "input 'x': dimensions without a size are taken as 1" in g.warnings


def test_a_size_that_depends_on_data_is_one_and_warned_of():
    nodes = [node("NonZero", "x", "i"), node("Cast", "i", "y", to=TensorProto.FLOAT)]
    g = onnx.read(model(nodes, [value("x", [4, 8])], [value("y", [2, "found"])]), "")
    (warning,) = (warning for warning in g.warnings if "depend on the data" in warning)
    assert warning.startswith("2 values have dimensions")


def test_one_size_that_depends_on_data_is_warned_of_as_one():
    found = value("y", [2, "found"], TensorProto.INT64)
    g = onnx.read(model([node("NonZero", "x", "y")], [value("x", [4, 8])], [found]), "")
    assert any(warning.startswith("1 value has dimensions") for warning in g.warnings)


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
    ("count", "message"),
    [(100_000, "value 'y': has 100001 dimensions"), (2**62, r"tensor 'w': is larger than 2\^53")],
)
def test_a_vector_too_long_for_a_shape_is_named(count, message):
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s w", "t"),
        node("Concat", "t w1", "u", axis=0),
        node("ConstantOfShape", "u", "y"),
    ]
    made = loaded(model(nodes, [value("x", [2])], [value("y", None)], [whole("w1", 1)]))
    made.graph.initializer.add(name="w", data_type=TensorProto.INT64, dims=[count])
    with pytest.raises(ReadError, match=message):
        infer(made, {})


def doublings(count: int) -> Any:
    """A graph that joins the shape of `x` to itself so often."""
    nodes = [node("Shape", "x", "v0")]
    nodes += [node("Concat", f"v{i} v{i}", f"v{i + 1}", axis=0) for i in range(count)]
    return graph(nodes, [], [value(f"v{count}", None, TensorProto.INT64)])


@pytest.mark.parametrize("count", [3, 40])
def test_a_vector_joined_to_itself_is_as_long_as_it_says(count):
    """Its content, which would be terabytes, is not followed."""
    body = doublings(count)
    made = loaded(model(body.node, [value("x", [2, 3, 4, 5])], body.output))
    found = Shapes.of(infer(made, {}).graph)
    assert found.get(f"v{count}") == Info((4 * 2**count,), "int64")


def test_what_is_joined_counts_in_bodies_and_where_no_length_is_known():
    assert _joined(doublings(2)) == 64 * 2 + 64 * 4
    inner = doublings(20)
    outer = graph([node("If", "c", "y", then_branch=inner, else_branch=inner)], [], [])
    assert _joined(outer) == 2 * _joined(inner) > MOST_JOINED
    tables = graph([node("Concat", "a b", "c")], [value(n, [2**20, 2]) for n in "ab"], [])
    assert _joined(tables) == 0


def test_what_shape_inference_rejects_is_an_error():
    nodes = [node("Magic", "x", "y", domain="acme")]
    with pytest.raises(
        ReadError, match=r"shape inference failed: .*No opset import for domain acme"
    ):
        onnx.read(model(nodes, [value("x", [4])], [value("y", [4])]), "")
