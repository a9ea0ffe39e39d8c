"""Names in an ONNX graph and its bodies."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from situate.readers.onnx.names import free, graphs_of, node_name, nodes_of, reads
from tests.readers.models import graph, node, value, weight

INNER = graph([node("Add", "a k", "b")], [], [value("b", None)], [weight("k", 1)])
MIDDLE = graph(
    [node("Neg", "x", "m"), node("If", "c", "r", then_branch=INNER, else_branch=INNER)],
    [],
    [value("r", None), value("z", None)],
)
OUTER = node("If", "d", "y", then_branch=MIDDLE, else_branch=MIDDLE)


def test_what_bodies_take_from_outside_is_read_too():
    assert list(free(INNER)) == ["a"]
    assert reads(OUTER) == ["d", "x", "c", "a", "z"]


def test_all_graphs_and_all_nodes():
    whole = graph([OUTER], [], [])
    assert len(list(graphs_of(whole))) == 1 + 2 + 4
    assert [result.op_type for result in nodes_of(whole)] == [
        "If",
        *["Neg", "If", "Add", "Add"] * 2,
    ]


def test_a_node_without_a_name_is_called_after_its_first_output():
    names = [node("Relu", "x", "- y", name="relu"), node("Relu", "x", "- y"), node("Relu", "x", "")]
    assert list(map(node_name, names)) == ["relu", "y", "Relu"]
