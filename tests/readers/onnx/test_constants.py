"""Constants of an ONNX model, known before any input comes."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

import onnx as package

from situate.readers import onnx
from situate.readers.onnx.constants import initializer_sizes, large_and_shared
from tests.readers.models import graph, loaded, model, node, value, weight, whole


def test_sizes_of_initializers():
    assert initializer_sizes(graph([], [], [], [weight("w", 2, 3)])) == {"w": 24}


def test_a_sparse_initializer_counts_its_values_and_indices():
    made = graph([], [], [])
    sparse = made.sparse_initializer.add(dims=[100])
    sparse.values.CopyFrom(weight("w", 5))
    sparse.indices.CopyFrom(whole("i", *range(5)))
    assert initializer_sizes(made) == {"w": 20 + 40}


def test_only_large_constants_of_several_readers_are_shared():
    sizes = {"large": 5000, "alone": 5000, "small": 4}
    assert large_and_shared(sizes, [["large", "small"], ["large", "small", "alone"]]) == ["large"]


def test_a_quantised_weight_stays_as_it_is():
    made = loaded(
        model(
            [node("DequantizeLinear", "q scale", "w"), node("MatMul", "x w", "y")],
            [value("x", [2, 64])],
            [value("y", None)],
            [
                weight("scale"),
                package.helper.make_tensor(
                    "q", package.TensorProto.INT8, [64, 8], bytes(512), raw=True
                ),
            ],
        )
    )
    ops = onnx.read(made.SerializeToString(), "").ops
    assert [op.kind for op in ops] == ["input", "onnx.DequantizeLinear", "onnx.MatMul"]
    assert ops[1].persistent == 512 + 4


def test_an_initializer_that_is_also_an_input_is_no_input():
    made = model(
        [node("Add", "x w", "y")],
        [value("x", [2]), value("w", [2])],
        [value("y", None)],
        [weight("w", 2)],
    )
    assert [op.kind for op in onnx.read(made, "").ops] == ["input", "onnx.Add"]


def test_an_unused_initializer_takes_no_memory():
    made = model([node("Relu", "x", "y")], [value("x", [2])], [value("y", None)], [weight("w", 2)])
    assert sum(op.persistent for op in onnx.read(made, "").ops) == 0
