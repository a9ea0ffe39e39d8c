"""Shape arithmetic is done before the step."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.readers import onnx
from situate.readers.onnx.known import known_values
from situate.readers.onnx.shapes import infer
from tests.readers.models import loaded, model, node, scalar, value, weight, whole

HEADS = [
    node("Shape", "x", "s"),
    node("Gather", "s two", "width"),
    node("Div", "width heads", "head"),
    node("Unsqueeze", "head zero", "h"),
    node("Gather", "s first", "front"),
    node("Concat", "front heads1 h", "target", axis=0),
    node("Reshape", "x target", "split"),
    node("Shape", "split", "s2"),
    node("Relu", "split", "y"),
]
CONSTANTS = [
    scalar("two", 2),
    scalar("heads", 4),
    whole("zero", 0),
    whole("first", 0, 1),
    whole("heads1", 4),
]


def heads(**dims: int):
    data = model(HEADS, [value("x", ["b", "n", 64])], [value("y", None)], CONSTANTS)
    return onnx.read(data, "", dims)


def test_what_follows_from_shapes_is_no_op():
    assert [op.kind for op in heads().ops] == ["input", "onnx.Reshape", "onnx.Relu"]


def test_shapes_follow_from_values():
    assert heads(b=2, n=5).ops[2].flops == 2 * 5 * 64


def test_known_values_are_those_that_no_input_reaches():
    made = infer(loaded(model(HEADS, [value("x", [1, 2, 64])], [value("y", None)], CONSTANTS)), {})
    assert made.known == {"s", "width", "head", "h", "front", "target", "s2"}


def test_a_large_constant_is_not_computed():
    nodes = [node("ConstantOfShape", "n", "big"), node("Add", "x big", "y")]
    made = loaded(model(nodes, [value("x", [1])], [value("y", None)], [whole("n", 10**12)]))
    assert "big" not in known_values(made)


@pytest.mark.parametrize(
    "made",
    [
        node("ConstantOfShape", "n", "big"),
        node("Expand", "zero n", "big"),
        node("Range", "from to one", "big"),
        node("Max", "tall wide", "big"),
    ],
)
def test_a_large_value_that_is_stated_to_be_small_is_not_computed(made):
    constants = [whole("n", 10**7), whole("zero", 0), scalar("from", 0), scalar("to", 10**7)]
    constants += [scalar("one", 1), weight("tall", 1024, 1), weight("wide", 1, 1024)]
    nodes = [made, node("Add", "x big", "y")]
    read = loaded(model(nodes, [value("x", [1])], [value("y", None)], constants))
    read.graph.value_info.append(value("big", [1]))
    assert "big" not in known_values(read)


@pytest.mark.parametrize("kind", ["Constant", "ConstantOfShape"])
def test_a_constant_in_another_file_stays_unknown(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_bytes(bytes(4))
    one = TensorProto(name="c", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    one.external_data.add(key="location", value="data")
    read = "" if kind == "Constant" else "n"
    nodes = [node(kind, read, "c", value=one), node("Add", "x c", "y")]
    made = model(nodes, [value("x", [1])], [value("y", None)], [whole("n", 1)])
    assert "c" not in known_values(loaded(made))


@pytest.mark.parametrize("kind", ["Div", "Mod"])
def test_a_division_by_zero_crashes_nothing(kind):
    nodes = [node(kind, "a zero", "q"), node("Relu", "x", "y")]
    onnx.read(
        model(nodes, [value("x", [1])], [value("y", None)], [scalar("a", 1), scalar("zero", 0)]), ""
    )


def test_what_follows_from_weights_alone_runs_at_loading():
    nodes = [node("Transpose", "w", "t"), node("MatMul", "x t", "y")]
    g = onnx.read(
        model(nodes, [value("x", [2, 64])], [value("y", None)], [weight("w", 32, 64)]), ""
    )
    assert [(op.kind, op.persistent) for op in g.ops] == [("input", 0), ("onnx.MatMul", 4 * 2048)]
