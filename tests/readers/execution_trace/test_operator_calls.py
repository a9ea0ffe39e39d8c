"""Which nodes of an execution trace are ops, and of which phase."""

from __future__ import annotations

from situate.readers.execution_trace.nodes import nodes
from situate.readers.execution_trace.operator_calls import calls_of
from tests.readers.traces import execution_trace, node, tensor


def calls(*given: dict) -> list:
    return calls_of(nodes(execution_trace(*given)))


def phases(*given: dict) -> list[str]:
    return [call.phase for call in calls(*given)]


ANNOTATION = node(3, "## forward ##", schema="")
AUTOGRAD = node(10, "autograd::engine::evaluate_function: Relu", schema="", thread=2)
BACK = node(11, "aten::mul", parent=10, thread=2)
BUCKET = node(12, "aten::copy_", thread=2)
STEP = node(20, "Optimizer.step#SGD.step", schema="")
UPDATE = node(21, "aten::add_", parent=20)


def test_the_outermost_operators_are_ops_and_know_what_ran_inside():
    linear = node(4, "aten::linear", parent=3)
    product = node(5, "aten::addmm", parent=4)
    fill = node(6, "aten::fill_", parent=5)
    (call,) = calls(ANNOTATION, linear, product, fill)
    assert call.node.name == "aten::linear"
    assert [inner.name for inner in call.inside] == ["aten::addmm", "aten::fill_"]


def test_phases_are_told_from_what_is_around():
    forward = node(4, "aten::linear", parent=3)
    assert phases(ANNOTATION, forward, AUTOGRAD, BACK, BUCKET, STEP, UPDATE) == [
        "forward",
        "backward",
        "backward",
        "update",
    ]


def test_without_a_way_back_there_is_no_way_forward():
    assert phases(node(4, "aten::linear"), STEP, UPDATE) == ["", "update"]


def test_an_op_is_on_a_gpu_where_one_of_its_tensors_is():
    here = node(4, "aten::a", [tensor(1)], [tensor(2)])
    there = node(5, "aten::b", [tensor(2)], [tensor(3, device="cuda:1")])
    nowhere = node(6, "aten::c", [tensor(4, device="meta")])
    assert [call.is_on_gpu for call in calls(here, there, nowhere)] == [False, True, False]
