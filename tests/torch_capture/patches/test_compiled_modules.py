"""A module that `torch.compile` wraps is captured as if it were not wrapped."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture import capture  # noqa: E402
from tests.torch_capture.modes.mixed_precision import compared, step  # noqa: E402


def whole():
    model, inputs, loss = step()
    return torch.compile(model), inputs, loss


def part():
    model, inputs, loss = step()
    model.layers[1] = torch.compile(model.layers[1])
    return model, inputs, loss


def in_place():
    model, inputs, loss = step()
    for layer in model.layers:
        layer.compile()
    return model, inputs, loss


@pytest.mark.parametrize("build", [whole, part, in_place])
def test_the_graph_is_that_of_the_model_without_compilation(build):
    compiled, plain = capture(build, name="m"), capture(step, name="m")
    assert compiled.ops == plain.ops
    assert compiled.tensors == plain.tensors


@pytest.mark.parametrize("build", [whole, part])
def test_the_placed_step_trains_what_was_wrapped(build):
    assert compared(build()).within(0.0)


def test_a_hook_of_the_wrapper_is_called():
    model, inputs, loss = part()
    model.layers[1].register_forward_hook(lambda *call: call[-1] * 2)
    assert compared((model, inputs, loss)).within(0.0)
