"""The gradients that a trace returns, and their replacement."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.build import build_fake  # noqa: E402
from situate.torch_capture.flow import described_outputs  # noqa: E402
from situate.torch_capture.nodes import add_call  # noqa: E402
from situate.torch_capture.tracing import Trace, joint  # noqa: E402
from situate.torch_capture.updates.gradient_nodes import gradient_nodes, replace_gradients  # noqa: E402
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


def test_other_gradients_take_their_places() -> None:
    trace = trace_of("tied")
    before = returned(trace)
    with trace.graph.inserting_before(trace.graph.output_node()):
        gradients = gradient_nodes(trace)
        halves = {
            name: add_call(trace.graph, "", "div.Tensor", node, 2)
            for name, node in gradients.items()
        }
    replace_gradients(trace, halves)
    assert returned(trace) == before
    assert set(halves.values()) < {node for node, _ in described_outputs(trace.graph)}
