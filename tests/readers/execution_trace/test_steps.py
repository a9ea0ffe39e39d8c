"""The number of steps that a trace is told to hold."""

from __future__ import annotations

from situate.readers import execution_trace
from tests.readers import traces
from tests.readers.traces import node, tensor

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
    found = execution_trace.read(traces.execution_trace(*nodes), "g").warnings
    return [warning for warning in found if "planned as one" in warning]


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
