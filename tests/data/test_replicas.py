"""Graphs of replicas in which some parameters are there once."""

from __future__ import annotations

from collections import Counter

import pytest

from situate.data.graph import Graph
from situate.data.replicas import replicated, with_once
from tests.solvers.slices import sliced

GRAPH = sliced(1, 1, 1, held=(3, 5), replicas=(2, 1))


def edges(graph: Graph) -> Counter[tuple[str, str]]:
    names = [op.name for op in graph.ops]
    return Counter((names[before], names[after]) for before, after in graph.edges())


def test_parameters_are_listed_with_the_bytes_of_a_copy():
    assert replicated(GRAPH) == {"a": 3, "b": 5}
    assert replicated(sliced(1, 1)) == {}


def test_a_parameter_that_is_there_once_is_read_by_all_slices_and_updated_once():
    result = with_once(GRAPH, {"a"})
    names = [op.name for op in result.ops]
    assert len(names) == len(GRAPH.ops) - 2
    assert result.slices.once == ("a",)
    (sizes,) = (op for op in result.ops if op.name == "a")
    assert (sizes.replica, sizes.persistent, sizes.group) == (None, 3, "a")
    read = {after for before, after in edges(result) if before == "a"}
    assert read == {f"slice{s}/a" for s in range(3)}
    assert edges(result)["a/sum1", "a/sgd"] == 1
    assert result.program_order == tuple(range(len(names)))


def test_all_parameters_may_be_there_once():
    result = with_once(GRAPH, {"a", "b"})
    assert {op.replica for op in result.ops if op.kind == "parameter"} == {None}
    assert replicated(result) == {}
    assert with_once(GRAPH, ()).hash == GRAPH.hash


def test_a_captured_step_has_the_same_ops_and_edges():
    torch = pytest.importorskip("torch")
    from situate.data.slices import Slices
    from tests.torch_capture.slices.steps import captured

    def loss(model, x, y):
        return torch.nn.functional.mse_loss(model(x), y)

    inputs = {"optimizer": "adam", "shares": (1, 1, 1, 1), "replicas": (2, 2)}
    trials, options = (
        with_once(captured(loss, **inputs), {"weight"}),
        captured(loss, **inputs, once=("weight",)),
    )
    ours, theirs = ({op.name: op for op in graph.ops} for graph in (trials, options))
    assert ours == theirs
    assert edges(trials) == edges(options)
    assert (
        trials.slices
        == options.slices
        == Slices((2, 2, 2, 2), loss="mean", replicas=(2, 2), once=("weight",))
    )
