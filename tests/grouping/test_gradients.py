from __future__ import annotations

import pytest

from situate import zoo
from situate.data.graph import Graph, Op, Tensor
from situate.grouping.gradients import MAX_SHARED_OPS, forward_ops
from situate.grouping.module_calls import calls


def graph(*ops: tuple[str, str], reads: dict[int, tuple[int, ...]], module: str = "net") -> Graph:
    """Ops of one module, by kind and phase, and what each reads."""
    consumers: dict[int, list[int]] = {}
    for op, producers in reads.items():
        for producer in producers:
            consumers.setdefault(producer, []).append(op)
    return Graph(
        "g",
        tuple(
            Op(f"op{j}", kind, module=module, phase=phase) for j, (kind, phase) in enumerate(ops)
        ),
        tuple(Tensor(f"t{j}", j, 1, tuple(users)) for j, users in consumers.items()),
    )


def gradients_of(found: Graph) -> dict[int, int]:
    return forward_ops(found, calls(found))


LAYER = (
    ("parameter", "forward"), ("relu", "forward"), ("mm", "forward"),
    ("loss", "forward"), ("loss_backward", "backward"),
    ("mm", "backward"), ("mm", "backward"), ("threshold_backward", "backward"),
)  # fmt: skip
READS = {2: (0, 1), 3: (2,), 4: (2,), 5: (4, 0), 6: (4, 1), 7: (5, 1)}
"""relu, product with a weight, loss; and back: by the weight, by the input, through the relu."""


def test_a_gradient_goes_with_the_op_whose_tensors_it_reads():
    found = gradients_of(graph(*LAYER, reads=READS))
    assert {5: found[5], 6: found[6], 7: found[7]} == {5: 2, 6: 2, 7: 1}


def test_a_gradient_in_another_module_is_of_no_op():
    layer = graph(*LAYER, reads=READS)
    apart = tuple(
        Op(op.name, op.kind, module=f"{op.module}.{op.phase}", phase=op.phase) for op in layer.ops
    )
    assert gradients_of(Graph("apart", apart, layer.tensors)) == {}


def test_a_sum_of_gradients_goes_with_the_gradient_that_it_reads():
    ops = (*LAYER, ("add", "backward"))
    assert gradients_of(graph(*ops, reads={**READS, 8: (5,)}))[8] == 2


def test_what_gradients_begin_with_goes_with_the_gradient_that_reads_it():
    ops = (*LAYER, ("full", "backward"))
    found = gradients_of(graph(*ops, reads={**READS, 4: (2, 8)}))
    assert found[8] == found[4]


def test_without_phases_nothing_is_a_gradient():
    assert gradients_of(graph(*((kind, "") for kind, _ in LAYER), reads=READS)) == {}


@pytest.mark.parametrize(("crowd", "known"), [(MAX_SHARED_OPS, 1), (MAX_SHARED_OPS + 1, 0)])
def test_a_tensor_that_a_crowd_reads_says_nothing(crowd, known):
    ops = [("input", ""), ("relu", ""), *[("mul", "")] * crowd, ("mul", "backward")]
    found = graph(*ops, reads=dict.fromkeys(range(2, crowd + 3), (0,)))
    assert len(gradients_of(found)) == known


def test_nearly_every_gradient_of_a_captured_network_has_its_op():
    found = zoo.load("inception_v3")
    backward = [j for j, op in enumerate(found.ops) if op.phase == "backward"]
    known = gradients_of(found)
    assert len(known) > 0.98 * len(backward)
    assert all(found.ops[j].module == found.ops[known[j]].module for j in known)
