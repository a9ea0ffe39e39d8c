"""The gradients that a trace returns, and their replacement."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.build import build_fake  # noqa: E402
from situate.torch_capture.flow import described_outputs  # noqa: E402
from situate.torch_capture.gradient_nodes import gradient_nodes, replace_gradients  # noqa: E402
from situate.torch_capture.tracing import Trace, joint  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402


def trace_of(name: str) -> Trace:
    return joint(build_fake(MODELS[name], name), True, name)


def returned(trace: Trace) -> list[str]:
    """The kinds of the outputs."""
    return [type(descriptor).__name__ for _, descriptor in described_outputs(trace.graph)]


def test_gradients_are_in_the_models_order() -> None:
    trace = trace_of("towers")
    names = ["left.weight", "left.bias", "right.weight", "right.bias", "head.weight", "head.bias"]
    with trace.graph.inserting_before(trace.graph.output_node()):
        assert list(gradient_nodes(trace)) == names


def test_a_tied_weight_has_one_gradient_in_place_of_two() -> None:
    trace = trace_of("tied")
    assert returned(trace).count("GradAOTOutput") == 4
    with trace.graph.inserting_before(trace.graph.output_node()):
        gradients = gradient_nodes(trace)
    assert str(gradients["table.weight"].target) == "aten.add.Tensor"
    replace_gradients(trace, gradients)
    assert returned(trace).count("GradAOTOutput") == 3
    assert "PlainAOTOutput" in returned(trace)
