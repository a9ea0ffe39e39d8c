"""Nodes, inputs and shared parameters of an ONNX model as ops."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

import onnx as package
from onnx import TensorProto, helper

from situate.errors import GraphError, ReadError
from situate.readers import onnx
from situate.readers.onnx.graph import initializer_sizes, large_and_shared
from tests.readers.models import graph, loaded, model, node, value, weight, whole


# Constants of an ONNX model, known before any input comes.
def test_sizes_of_initializers():
    assert initializer_sizes(graph([], [], [], [weight("w", 2, 3)])) == {"w": 24}


def test_a_sparse_initializer_counts_its_values_and_indices():
    result = graph([], [], [])
    sparse = result.sparse_initializer.add(dims=[100])
    sparse.values.CopyFrom(weight("w", 5))
    sparse.indices.CopyFrom(whole("i", *range(5)))
    assert initializer_sizes(result) == {"w": 20 + 40}


def test_only_large_constants_of_several_readers_are_shared():
    sizes = {"large": 5000, "alone": 5000, "small": 4}
    assert large_and_shared(sizes, [["large", "small"], ["large", "small", "alone"]]) == ["large"]


def test_a_quantised_weight_stays_as_it_is():
    proto = loaded(
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
    ops = onnx.read(proto.SerializeToString(), "").ops
    assert [op.kind for op in ops] == ["input", "onnx.DequantizeLinear", "onnx.MatMul"]
    assert ops[1].persistent == 512 + 4


def test_an_initializer_that_is_also_an_input_is_no_input():
    data = model(
        [node("Add", "x w", "y")],
        [value("x", [2]), value("w", [2])],
        [value("y", None)],
        [weight("w", 2)],
    )
    assert [op.kind for op in onnx.read(data, "").ops] == ["input", "onnx.Add"]


def test_an_unused_initializer_takes_no_memory():
    data = model([node("Relu", "x", "y")], [value("x", [2])], [value("y", None)], [weight("w", 2)])
    assert sum(op.persistent for op in onnx.read(data, "").ops) == 0


OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("acme", 1)]
X, Y = value("x", [4, 8]), value("y", None)
INDEX = helper.make_tensor("i", TensorProto.INT64, [], [0])


def names(g, ops):
    return [g.ops[op].name for op in ops]


# Which op holds a constant, and which ops are views.
def test_a_large_shared_weight_is_an_op_beside_its_first_reader():
    nodes = [node("MatMul", "x w", "a"), node("MatMul", "a w", "y")]
    g = onnx.read(model(nodes, [value("x", [4, 32])], [Y], [weight("w", 32, 32)]), "")
    parameter = g.ops[1]
    assert (parameter.kind, parameter.persistent, parameter.flops) == ("parameter", 4096, 0)
    assert [op.group for op in g.ops] == [None, "w", "w", None]
    tensor = next(t for t in g.tensors if t.name == "w")
    assert tensor.resident
    assert names(g, tensor.consumers) == ["a", "y"]
    assert sum(op.persistent for op in g.ops) == 4096


def test_a_small_shared_constant_is_copied():
    nodes = [node("Add", "x one", "a"), node("Add", "a one", "y")]
    g = onnx.read(model(nodes, [X], [Y], [weight("one", 1)]), "")
    assert [op.kind for op in g.ops] == ["input", "onnx.Add", "onnx.Add"]
    assert sum(op.persistent for op in g.ops) == 4


def test_views_cost_nothing_and_sit_with_their_producer():
    nodes = [
        node("Relu", "x", "r"),
        node("Flatten", "r", "f"),
        node("Identity", "f", "i"),
        node("Relu", "i", "y"),
    ]
    g = onnx.read(model(nodes, [X], [Y]), "")
    assert [(op.flops, op.traffic) for op in g.ops[2:4]] == [(0, 0), (0, 0)]
    assert [op.group for op in g.ops] == [None, "r", "r", "r", None]
    assert names(g, next(t for t in g.tensors if t.name == "r").consumers) == ["f", "i", "y"]


def test_a_transpose_moves_data():
    g = onnx.read(model([node("Transpose", "x", "y")], [X], [Y]), "")
    assert g.ops[1].traffic == 2 * 4 * 32
    assert g.ops[1].group is None


# Names, modules and control flow.
def test_names_that_are_missing_or_repeat_are_made_unique():
    nodes = [
        node("Relu", "x", "a"),
        node("Relu", "a", "b", name="x"),
        node("Relu", "b", "y", name="x"),
    ]
    assert [op.name for op in onnx.read(model(nodes, [X], [Y]), "").ops] == ["x", "a", "x#2", "x#3"]


def test_a_module_is_the_path_in_a_name():
    nodes = [node("Relu", "x", "y", name="/layer1/conv/Relu")]
    assert onnx.read(model(nodes, [X], [Y]), "").ops[1].module == "layer1/conv"


def test_a_value_read_twice_by_one_op_is_one_edge():
    g = onnx.read(model([node("Mul", "x x", "y")], [X], [Y]), "")
    assert g.tensors[0].consumers == (1,)


def test_control_flow_is_one_op_that_costs_its_dearer_branch():
    relu = graph([node("Relu", "x", "e")], [], [value("e", [4, 8])])
    product = graph([node("MatMul", "x w", "e")], [], [value("e", [4, 8])], [weight("w", 8, 8)])
    nodes = [node("If", "c", "y", then_branch=relu, else_branch=product)]
    g = onnx.read(model(nodes, [X, value("c", [], TensorProto.BOOL)], [value("y", [4, 8])]), "")
    assert g.ops[2].kind == "onnx.If"
    assert g.ops[2].flops == 2 * 4 * 8 * 8
    assert g.ops[2].persistent == 4 * 64
    assert names(g, g.tensors[0].consumers) == ["y"]


def test_a_body_holds_what_it_states_itself():
    """As an initializer of the body, of one inside it, or as a node."""
    stated = [node("Constant", "", "k", value=weight("k", 8, 8)), node("MatMul", "x k", "e")]
    inner = graph(stated, [], [value("e", [4, 8])])
    both = {"then_branch": inner, "else_branch": inner}
    outer = graph([node("If", "c", "e", **both)], [], [value("e", [4, 8])], [weight("w", 5)])
    relu = graph([node("Relu", "x", "e")], [], [value("e", [4, 8])])
    nodes = [node("If", "c", "y", then_branch=outer, else_branch=relu)]
    g = onnx.read(model(nodes, [X, value("c", [], TensorProto.BOOL)], [value("y", [4, 8])]), "")
    assert g.ops[2].persistent == 4 * (5 + 2 * 64)


def test_an_output_that_is_an_input_or_a_constant_is_no_matter():
    g = onnx.read(model([node("Relu", "x", "y")], [X], [X, value("w", [2])], [weight("w", 2)]), "")
    assert [t.name for t in g.tensors if t.output] == ["x"]


def test_a_model_of_constants_alone_says_so():
    nodes = [node("Relu", "w", "a"), node("Relu", "a", "y")]
    with pytest.raises(ReadError, match="all its nodes are constant"):
        onnx.read(model(nodes, [], [value("y", [2])], [weight("w", 2)]), "")
    with pytest.raises(GraphError, match="the graph has no ops"):
        onnx.read(model([], [], [value("w", [2])], [weight("w", 2)]), "")


# Functions, custom ops and broken models.
def test_a_function_is_spread_out():
    proto = loaded(model([node("Twice", "x", "y", domain="my")], [X], [Y]))
    proto.functions.add(domain="my", name="Twice", input=["a"], output=["b"]).node.append(
        node("Add", "a a", "b")
    )
    proto.functions[0].opset_import.add(domain="", version=18)
    proto.opset_import.add(domain="my", version=1)
    assert [op.kind for op in onnx.read(proto.SerializeToString(), "").ops] == ["input", "onnx.Add"]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Relu", "z", "y")], "op 'y' reads 'z', which no op makes"),
        ([node("Relu", "x", "q")], "output 'y' is made by no op"),
        ([node("Relu", "x", "y"), node("Relu", "x", "y")], "value 'y' is made twice"),
        (
            [node("Magic", "x", "y", domain="acme")],
            "the shape of 'y' cannot be inferred.*value_info",
        ),
    ],
)
def test_a_broken_model_is_named(nodes, message):
    outputs = [value("y", None if nodes[0].op_type == "Magic" else [4, 8])]
    with pytest.raises(ReadError, match=message):
        onnx.read(model(nodes, [X], outputs, [INDEX], opset_imports=OPSETS), "")


@pytest.mark.parametrize("kind", ["Reshape", "Identity", "Relu"])
def test_a_node_without_inputs_is_an_error(kind):
    with pytest.raises(ReadError, match=f"shape inference failed: .*{kind}"):
        onnx.read(model([node(kind, "", "y")], [X], [value("y", [4, 8])]), "")


def test_a_cycle_is_named():
    nodes = [node("Add", "x b", "a"), node("Relu", "a", "b")]
    shapes = [value("a", [4, 8]), value("b", [4, 8])]
    with pytest.raises(GraphError, match=r"cycle: '[ab]' -> '[ab]' -> '[ab]'"):
        onnx.read(model(nodes, [X], shapes), "")


def test_a_custom_op_with_a_stated_shape_is_read():
    g = onnx.read(
        model(
            [node("Magic", "x", "y", domain="acme")],
            [X],
            [value("y", [4, 8])],
            opset_imports=OPSETS,
        ),
        "",
    )
    assert (g.ops[1].kind, g.ops[1].traffic) == ("onnx.Magic", 2 * 128)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")],
            r"cycle: '[ab]' -> '[ab]' -> '[ab]'",
        ),
        ([node("Add", "x y", "y")], "op 'y' waits for itself"),
        ([node("Relu", "z", "a"), node("Relu", "a", "y")], "op 'a' reads 'z', which no op makes"),
        ([node("Relu", "a", "y"), node("Relu", "x", "a")], "op 'y' reads 'a' before op 'a' makes"),
        ([node("Relu", "x", "y"), node("Relu", "y", "y")], "value 'y' is made twice"),
    ],
)
def test_what_nodes_read_is_made_before_them(nodes, message):
    """Without declared shapes, which shape inference would otherwise ask for."""
    with pytest.raises((GraphError, ReadError), match=message):
        onnx.read(model(nodes, [value("x", [4])], [value("y", None)]), "net")


def test_nodes_that_are_sorted_as_the_message_says_are_read():
    nodes = [node("Relu", "a", "y"), node("Relu", "x", "a")]
    with pytest.raises(ReadError, match="op 'y' reads 'a' before op 'a' makes it: sort them"):
        onnx.read(model(nodes, [value("x", [4])], [value("y", None)]), "net")
    assert len(onnx.read(model(nodes[::-1], [value("x", [4])], [value("y", None)]), "net").ops) == 3
