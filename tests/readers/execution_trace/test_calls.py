"""Which nodes of an execution trace are ops, and of which phase."""

from __future__ import annotations

from situate.readers import execution_trace
from situate.readers.execution_trace.calls import calls_of
from situate.readers.execution_trace.nodes import nodes
from tests.readers import traces
from tests.readers.traces import node, tensor


def calls(*arguments: dict) -> list:
    return calls_of(nodes(traces.execution_trace(*arguments)))


def phases(*arguments: dict) -> list[str]:
    return [call.phase for call in calls(*arguments)]


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


# The number of steps in a trace.
ADD = "aten::add_(Tensor(a!) self) -> Tensor(a!)"


def update(first: int, *memory: int, name: str = "Optimizer.step#Adam.step") -> list[dict]:
    """An optimiser's step that overwrites so many tensors."""
    adds = [
        node(first + place, "aten::add_", [tensor(m)], [tensor(m)], schema=ADD, parent=first)
        for place, m in enumerate(memory, start=1)
    ]
    return [node(first, name, schema=""), *adds]


def warnings(*steps: list[dict]) -> list[str]:
    nodes = [node for step in steps for node in step]
    result = execution_trace.read(traces.execution_trace(*nodes), "g").warnings
    return [warning for warning in result if "planned as one" in warning]


def test_an_optimizer_that_ran_again_tells_of_several_steps():
    assert warnings(update(10, 1, 2, 3), update(20, 1, 2, 3), update(30, 1, 2, 3)) == [
        "an optimizer updates the same tensors 3 times: the steps are planned as one"
    ]


def test_two_optimizers_of_one_step_are_no_two_steps():
    assert warnings(update(10, 1, 2, 3), update(20, 4, 5, 3)) == []


def test_two_optimizers_of_two_steps_are_two_steps():
    both = [update(10, 1, 2), update(20, 4, 5), update(30, 1, 2), update(40, 4, 5)]
    assert "2 times" in warnings(*both)[0]


def test_one_step_is_told_of_nothing():
    assert warnings(update(10, 1, 2, 3)) == []
    assert warnings([node(3, "aten::f", [tensor(1)])]) == []
