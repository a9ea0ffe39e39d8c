"""Every op of a program has one role, every storage one owner."""

from __future__ import annotations

from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.programs.roles import Roles  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import program  # noqa: E402


def roles(name: str, optimizer: str = "sgd") -> Roles:
    return Roles(program(name, optimizer))


def test_roles_of_a_step_with_tied_weights() -> None:
    found = roles("tied")
    counts = Counter(found.of(op) for op in range(len(found.program.nodes)))
    assert counts["state"] == counts["update"] == 3
    assert counts["input"] == 2
    assert counts["tangent"] == 1
    assert counts["copy"] == 0
    assert counts["compute"] > 5


def test_a_buffer_that_several_ops_touch_is_copied_at_the_end() -> None:
    found = roles("odd", "adamw")
    copied = [
        found.program.graph.ops[op].name
        for op in range(len(found.program.nodes))
        if found.of(op) == "copy"
    ]
    assert copied == ["seen/copy"]


@pytest.mark.parametrize("name", MODELS)
def test_whoever_makes_what_is_read_is_an_op(name: str) -> None:
    found = roles(name, "adam")
    assert found.wanted <= found.owner.keys()
    for tensor in found.program.graph.tensors:
        assert tensor.producer in set(found.owner.values())


@pytest.mark.parametrize("name", MODELS)
def test_the_edges_of_the_graph_are_what_the_nodes_read(name: str) -> None:
    found = roles(name, "adam")
    reads = found.program.step.flow.reads
    edges = set(found.program.graph.edges())
    for op, node in enumerate(found.program.nodes):
        if found.of(op) == "compute":
            owners = {found.owner[storage] for storage in reads[node]}
            assert {(owner, op) for owner in owners} <= edges


def test_what_draws_is_in_the_order_of_the_unplaced_step() -> None:
    found = roles("convolutional", "adam")
    names = [found.program.graph.ops[found.owner[node, 0]].name for node in found.random]
    assert names == ["3/native_dropout", "6/native_dropout"]
    assert roles("towers").random == {}
