"""Nodes of execution traces, in both layouts."""

from __future__ import annotations

import json

import pytest

from situate.errors import ReadError
from situate.readers.execution_trace.nodes import Value, nodes
from tests.readers.traces import RELU, attributed, execution_trace, node, tensor


def values(value: object, kind: str) -> tuple[Value, ...]:
    inputs = node(3, "aten::f", [value], types=[kind])
    return nodes(execution_trace(inputs))[-1].inputs


def test_both_layouts_are_the_same_nodes():
    old = nodes(execution_trace(*RELU))
    new = nodes(execution_trace(*map(attributed, RELU), schema="1.1.1-chakra.0.0.4"))
    assert old == new
    assert [(n.id, n.name, n.parent, n.thread, n.record) for n in old[2:]] == [
        (3, "aten::linear", 2, 1, 1003),
        (4, "aten::relu", 2, 1, 1004),
    ]


def test_nodes_are_in_the_order_in_which_they_began():
    assert [n.id for n in nodes(execution_trace(*reversed(RELU)))] == [1, 2, 3, 4]


def test_a_tensor_has_its_memory_size_and_dtype():
    (value,) = values([9, 5, 0, 6, 2, "cuda:0"], "Tensor(c10::Half)")
    assert value == Value(5, 6, 12, "float16", "cuda:0", 0, None)


def test_tensors_without_memory_to_look_at_share_none():
    first, second = ([number, 0, 0, 4, 4, "cpu"] for number in (5, 6))
    assert values(first, "Tensor(float)")[0].storage != values(second, "Tensor(float)")[0].storage


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("Tensor(float)", "float32"),
        ("Tensor(long int)", "int64"),
        ("Tensor(c10::BFloat16)", "bfloat16"),
        ("Tensor(c10::Float8_e4m3fn)", "float8_e4m3fn"),
        ("Tensor(bool)", "bool"),
        ("Tensor(unsigned short)", "uint16"),
        ("Tensor(c10::complex<float>)", "complex64"),
        ("Tensor(c10::complex<c10::Half>)", "complex32"),
        ("Tensor(c10::quint4x2)", "quint4x2"),
        ("Tensor(nullptr (uninitialized))", ""),
    ],
)
def test_dtypes_are_those_of_pytorch(kind, dtype):
    assert values(tensor(5), kind)[0].dtype == dtype


def test_the_tensors_of_a_list_have_their_place_in_it():
    result = values([tensor(5), tensor(6)], "GenericList[Tensor(float),Tensor(double)]")
    assert [(v.storage, v.argument, v.entry, v.dtype) for v in result] == [
        (5, 0, 0, "float32"),
        (6, 0, 1, "float64"),
    ]


def test_what_is_no_tensor_or_has_no_elements_is_no_value():
    assert values([1, 2], "GenericList[Int,Int]") == ()
    assert values(3.5, "Double") == ()
    assert values(tensor(5, elements=0), "Tensor(float)") == ()


def test_a_node_whose_parent_is_not_there_ran_in_none():
    assert nodes(execution_trace(node(9, "aten::f", parent=5)))[-1].parent == 9


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2, 3], "node 3: inputs\\[0\\]: is no tensor"),
        ([1, -2, 0, 4, 4, "cpu"], "is no tensor"),
        ([1, 2, 0, 2**70, 4, "cpu"], "is no tensor"),
        ([1, 2.5, 0, 4, 4, "cpu"], "is no tensor"),
        ([1, 2, 0, 4, 4, 0], "is no tensor"),
        ([[[[[[[[[[tensor(1)]]]]]]]]]], "lists more than 8 deep"),
    ],
)
def test_a_bad_tensor_is_named(value, message):
    with pytest.raises(ReadError, match=message):
        values(value, "Tensor(float)")


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (execution_trace(schema="2.0"), "schema: must be 1.0 or 1.1, got '2.0'"),
        (execution_trace(RELU[0], RELU[0]), "nodes: two have the id 3"),
        (execution_trace({**RELU[0], "parent": 4}, RELU[1]), "node 3: ran inside node 4, which"),
        (execution_trace({**RELU[0], "id": "x"}), r"nodes\[2\].id: expected int, got str"),
        (execution_trace({**RELU[0], "name": None}), r"nodes\[2\].name: expected str"),
        (execution_trace(*RELU)[:-9], "not valid JSON"),
    ],
)
def test_a_bad_file_is_refused(trace, message):
    with pytest.raises(ReadError, match=message):
        nodes(trace)


def test_a_bad_attribute_is_named():
    bad = attributed(RELU[0])
    bad["attrs"][0]["value"] = "many"
    with pytest.raises(ReadError, match="node 3: rf_id: must be a whole number, got 'many'"):
        nodes(json.dumps({"schema": "1.1", "nodes": [bad]}).encode())
