from __future__ import annotations

from collections import Counter

import pytest

from situate import zoo
from situate.data.graph import Graph, Op, Tensor
from situate.grouping.module_calls import SHARED, calls


def cell(steps: int) -> Graph:
    """A cell called again and again: its weight, two ops a step, and the gradients in reverse. The
    first gradient lacks the addition that all others have."""
    ops = [Op("cell.w", kind="parameter", module="cell", phase="forward")]
    for _ in range(steps):
        ops += [
            Op(f"op{len(ops) + i}", kind=kind, module="cell")
            for i, kind in enumerate(("mm", "tanh"))
        ]
    for step in range(steps):
        kinds = ("tanh_backward", "mm", "add")[: 2 + (step > 0)]
        ops += [
            Op(f"op{len(ops) + i}", kind=kind, module="cell", phase="backward")
            for i, kind in enumerate(kinds)
        ]
    ops.append(Op("cell.w/sgd", kind="update.sgd", module="cell", phase="update"))
    return Graph("cell", tuple(ops))


def test_calls_are_counted_forward_and_back_again():
    numbers = [call and call[1] for call in calls(cell(3))]
    forward, backward = [0, 0, 1, 1, 2, 2], [2, 2, 1, 1, 1, 0, 0, 0]
    assert numbers == [SHARED, *forward, *backward, SHARED]


def test_a_module_called_once_has_no_calls():
    assert calls(cell(1)) == [None] * 6


def test_the_outermost_module_that_is_called_counts():
    ops = [
        Op(f"op{j}", kind=kind, module=module)
        for j, (kind, module) in enumerate([("cat", "net.cell"), ("mm", "net.cell.gates")] * 4)
    ]
    ops.append(Op("head", kind="mm", module="net"))
    result = calls(Graph("nested", tuple(ops)))
    assert result == [("net.cell", j // 2) for j in range(8)] + [None]


def test_a_list_of_layers_is_not_called():
    """Each layer is: the path `layers` runs no op itself."""
    ops = [Op(f"op{j}", kind="mm", module=f"layers.{j // 3}") for j in range(6)]
    assert calls(Graph("list", tuple(ops))) == [(f"layers.{j // 3}", j % 3) for j in range(6)]


def test_ops_without_module_belong_to_no_call():
    assert calls(Graph("flat", (Op("a", kind="mm"), Op("b", kind="mm")))) == [None, None]


def test_a_gradient_between_two_calls_belongs_to_the_one_whose_op_it_reads():
    """The multiplication, of which the last step has none, comes first in its step."""
    kinds = ["tanh", "tanh", "tanh_backward", "mul", "tanh_backward"]
    phases = ["", "", "backward", "backward", "backward"]
    ops = tuple(
        Op(f"op{j}", kind=kind, module="cell", phase=phase)
        for j, (kind, phase) in enumerate(zip(kinds, phases, strict=True))
    )
    for step in (0, 1):
        graph = Graph("cell", ops, (Tensor("t", step, 1, (3,)),))
        assert calls(graph)[3] == ("cell", step)


@pytest.mark.parametrize(("network", "steps"), [("rnnlm", 35), ("cifar_cnn", 2)])
def test_tensors_lead_from_a_call_to_the_same_or_the_next(network, steps):
    """Forwards in the forward pass, backwards in the backward pass."""
    graph = zoo.load(network)
    result, visited = calls(graph), 0
    for a, b in graph.edges():
        first, second = result[a], result[b]
        if first and second and first[0] == second[0] and SHARED not in (first[1], second[1]):
            later = second[1] - first[1]
            returns = graph.ops[a].phase == graph.ops[b].phase == "backward"
            assert (-later if returns else later) in (0, 1)
            visited += 1
    assert visited > steps
    assert set(Counter(call[0] for call in set(result) if call and call[1] >= 0).values()) == {
        steps
    }
