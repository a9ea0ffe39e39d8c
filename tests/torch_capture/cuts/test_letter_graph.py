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
