"""The pass over an ONNX model: shape arithmetic is done before the step."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.readers import onnx
from situate.readers.onnx.walk import infer
from tests.readers.models import graph, loaded, model, node, scalar, value, weight, whole
from tests.readers.onnx.remedies import read, work

# The pass over an ONNX model: shape arithmetic is done before the step.
Y = value("y", None)

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
    inference = infer(
        loaded(model(HEADS, [value("x", [1, 2, 64])], [value("y", None)], CONSTANTS)), {}
    )
    assert inference.constants == {"s", "width", "head", "h", "front", "target", "s2"}


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


def test_nodes_of_a_body_that_follow_from_shapes_are_no_work():
    body = graph([*HEADS[:-2], node("Relu", "split", "b")], [], [value("b", None)])
    nodes = [node("If", "c", "y", then_branch=body, else_branch=body)]
    inputs = [value("x", ["b", "n", 64]), value("c", [], TensorProto.BOOL)]
    data = model(nodes, inputs, [value("y", None)], CONSTANTS)
    assert work(data, "If", b=2, n=5) == 2 * 5 * 64


def test_places_of_what_is_not_zero_are_known_of_what_is_known():
    nodes = [node("Shape", "x", "s"), node("NonZero", "s", "i"), node("Gather", "x i", "y")]
    data = model(nodes, [value("x", [7, 5])], [value("y", None)])
    assert [op.kind for op in read(data).ops] == ["input", "onnx.Gather"]
