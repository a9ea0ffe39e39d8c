"""From a user's text to a model that runs."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from situate.errors import SituateError
from situate.runtime.subject import find_subject
from situate.torch_capture import capture_function


# Built and captured models, and texts that are refused.
def test_it_is_real_and_its_graph_is_the_one_that_is_planned() -> None:
    subject = find_subject("tests.profiling.models:mlp", "adam")
    graph_to_plan = capture_function("tests.profiling.models:mlp", optimizer="adam", cache=False)
    assert subject.program.graph == graph_to_plan
    assert [tuple(tensor.shape) for tensor in subject.inputs] == [(8, 32), (8,)]
    assert float(subject.inputs[0].abs().sum()) > 0


def test_devices_that_it_names_are_among_the_warnings_of_its_graph() -> None:
    subject = find_subject("tests.branches:named")
    graph_to_plan = capture_function("tests.branches:named", cache=False)
    assert subject.program.graph == graph_to_plan
    assert subject.program.graph.warnings == graph_to_plan.warnings
    assert len(graph_to_plan.warnings) == 1


def test_inference_has_no_update() -> None:
    graph = find_subject("tests.profiling.models:mlp:inference").program.graph
    assert {op.phase for op in graph.ops} == {"forward"}


@pytest.mark.parametrize(
    ("text", "optimizer", "message"),
    [
        ("model.json", None, "'model.json' is no PyTorch model that could run"),
        ("resnet5", None, "did you mean 'resnet50'"),
        ("tests.profiling.models:none", None, "none"),
        ("tests.profiling.models:two", None, r"must return \(model, inputs, loss\)"),
        ("tests.profiling.models:broken", None, "no weights here"),
        ("tests.profiling.models:mlp", "adamm", "did you mean 'adam'"),
        ("tests.profiling.models:mlp:inference", "adam", "inference has no update"),
    ],
)
def test_unknown_models_are_refused(text: str, optimizer: str | None, message: str) -> None:
    with pytest.raises(SituateError, match=message) as error:
        find_subject(text, optimizer)
    assert "\n" not in str(error.value)
