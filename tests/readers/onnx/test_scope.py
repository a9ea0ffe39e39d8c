"""Types and contents of a graph's values and of those around it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.errors import ReadError
from situate.readers.onnx.scope import Scope
from situate.readers.onnx.types import Info, Shapes, shape_of, tensor
from situate.readers.onnx.walk import infer
from tests.readers.models import graph, loaded, model, node, scalar, value, weight, whole

# Bounds on what an ONNX model may stand for.
NEW_AXES = node("Unsqueeze", "x w", "y")


def functions(count: int, calls: int) -> Any:
    """A model with a chain of functions, each of so many calls of the next."""
    proto = loaded(model([node("F0", "x", "y", domain="my")], [value("x", [1])], [value("y", [1])]))
    for i in range(count):
        function = proto.functions.add(
            domain="my", name=f"F{i}", input=["v0"], output=[f"v{calls}"]
        )
        kind, domain = ("Relu", "") if i == count - 1 else (f"F{i + 1}", "my")
        function.node.extend(node(kind, f"v{j}", f"v{j + 1}", domain=domain) for j in range(calls))
    return proto


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (functions(30, 3), "its functions stand for more than 250,000 nodes"),
        (functions(100, 1), "function 'F0': calls itself, or others more than 32 deep"),
    ],
)
def test_functions_without_end_are_an_error(op, message):
    with pytest.raises(ReadError, match=message):
        infer(op, {})


@pytest.mark.parametrize(
    ("op", "rank"),
    [
        (model([node("Relu", "x", "y")], [value("x", [1] * 65)], [value("y", None)]), 65),
        (model([NEW_AXES], [value("x", [2])], [value("y", None)], [whole("w", *range(99))]), 100),
    ],
)
def test_a_value_of_too_many_dimensions_is_named(op, rank):
    with pytest.raises(ReadError, match=f"value '[xy]': has {rank} dimensions, more than 64"):
        infer(loaded(op), {})


def test_a_tensor_too_large_for_a_graph_is_named():
    proto = loaded(model([node("Reshape", "x w", "y")], [value("x", [2])], [value("y", None)]))
    proto.graph.initializer.add(name="w", data_type=TensorProto.INT64, dims=[2**62])
    with pytest.raises(ReadError, match=r"tensor 'w': is larger than 2\^53"):
        infer(proto, {})


def doublings(count: int) -> Any:
    """A model that joins the shape of `x` to itself so often."""
    nodes = [node("Shape", "x", "v0")]
    nodes += [node("Concat", f"v{i} v{i}", f"v{i + 1}", axis=0) for i in range(count)]
    last = value(f"v{count}", None, TensorProto.INT64)
    return loaded(model(nodes, [value("x", [2, 3, 4, 5])], [last]))


@pytest.mark.parametrize("count", [3, 28])
def test_a_vector_joined_to_itself_is_as_long_as_it_says(count):
    """Its content, which would be gigabytes, is not followed."""
    shapes = Shapes.of(infer(doublings(count), {}).graph)
    assert shapes.get(f"v{count}") == Info((4 * 2**count,), "int64")


# Small values that follow from shapes and constants are computed.
def test_a_large_constant_is_not_computed():
    nodes = [node("ConstantOfShape", "n", "big"), node("Add", "x big", "y")]
    proto = loaded(model(nodes, [value("x", [1])], [value("y", None)], [whole("n", 10**12)]))
    assert "big" not in infer(proto, {}).constants


@pytest.mark.parametrize(
    "op",
    [
        node("ConstantOfShape", "n", "big"),
        node("Expand", "zero n", "big"),
        node("Range", "from to one", "big"),
        node("Max", "tall wide", "big"),
    ],
)
def test_a_large_value_that_is_stated_to_be_small_is_not_computed(op):
    constants = [whole("n", 10**7), whole("zero", 0), scalar("from", 0), scalar("to", 10**7)]
    constants += [scalar("one", 1), weight("tall", 1024, 1), weight("wide", 1, 1024)]
    nodes = [op, node("Add", "x big", "y")]
    read = loaded(model(nodes, [value("x", [1])], [value("y", None)], constants))
    read.graph.value_info.append(value("big", [1]))
    assert "big" not in infer(read, {}).constants


@pytest.mark.parametrize("kind", ["Constant", "ConstantOfShape"])
def test_a_constant_in_another_file_stays_unknown(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_bytes(bytes(4))
    one = TensorProto(name="c", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    one.external_data.add(key="location", value="data")
    read = "" if kind == "Constant" else "n"
    nodes = [node(kind, read, "c", value=one), node("Add", "x c", "y")]
    data = model(nodes, [value("x", [1])], [value("y", None)], [whole("n", 1)])
    assert "c" not in infer(loaded(data), {}).constants


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
