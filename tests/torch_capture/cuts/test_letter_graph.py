"""The letter graph of a traced step."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.data.letter_graph import SUM  # noqa: E402
from situate.torch_capture import trace_step  # noqa: E402
from tests.torch_capture.cuts.networks import decoder, perceptron  # noqa: E402


# Every op of the graph has one place in the letter graph.
@pytest.mark.parametrize("build", [decoder, perceptron])
def test_all_ops_of_the_graph_are_there(build) -> None:
    step = trace_step(build, "adam", "network")
    numbers = sorted(i for op in step.letters.ops for i in op.ops)
    assert numbers == list(range(len(step.graph().ops)))
    assert all(value[0] < len(step.letters.ops) for op in step.letters.ops for value in op.reads)


def test_parameters_have_their_gradients_and_updates() -> None:
    step = trace_step(perceptron, "adam", "network")
    graph = step.graph()
    parameters = [op for op in step.letters.ops if graph.ops[op.ops[0]].kind == "parameter"]
    assert all(len(op.ops) == 2 and len(op.reads) == 1 for op in parameters)
    assert all(graph.ops[op.ops[1]].kind == "update.adam" for op in parameters)


def test_a_contracted_dimension_makes_partial_results() -> None:
    letters = trace_step(perceptron, "sgd", "network").letters
    features = {c for c, kind in enumerate(letters.kinds) if kind == "features"}
    options = [o for op in letters.ops for o in op.options if o.letter_class in features]
    assert any(SUM in option.outputs for option in options)


def test_layers_are_tied() -> None:
    letters = trace_step(decoder, "sgd", "network").letters
    ties = [op.tie for op in letters.ops if "layers.*" in op.tie]
    assert len(set(ties)) <= 0.6 * len(ties)


# Between an op and its reader may lie views, which classes divide or not.
def test_operands_have_the_views_that_they_pass() -> None:
    letters = trace_step(decoder, "sgd", "network").letters
    assert all(len(op.passages) == len(op.reads) for op in letters.ops)
    passages = [(op, own) for op in letters.ops for own in op.passages]
    assert {own.is_direct for _, own in passages} == {True, False}
    assert all(own.every <= own.some for _, own in passages)
    for op, own in passages:
        if own.is_direct:
            assert not own.some
            assert own.nbytes in {letters.ops[v].sizes[k] for v, k in op.reads}


# Batch and sequence divide one dimension of a flattened tensor, but in other ranges.
def test_classes_of_one_dimension_have_one_number() -> None:
    letters = trace_step(decoder, "sgd", "network").letters
    batch, sequence = letters.kinds.index("batch"), letters.kinds.index("sequence")
    assert letters.dimensions[batch] == letters.dimensions[sequence]
    assert letters.ranges[batch] != letters.ranges[sequence]
    assert len(set(letters.ranges)) == len(letters.ranges)
