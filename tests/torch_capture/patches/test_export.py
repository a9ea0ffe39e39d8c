"""Lines of the loss, compiled modules and plain tensors in an exported step."""

from __future__ import annotations

from functools import cache, partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.fx import proxy  # noqa: E402

from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.patches.export import ANCHORS, loss_lines  # noqa: E402
from tests.torch_capture.patches.mixed_precision import compare_steps, step  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402


# Warnings about the loss name its line.
def flipped(model, x, y):
    return (model(x) - y.flip(0)).square().mean()


def test_a_warning_of_the_loss_names_its_line():
    line = flipped.__code__.co_firstlineno + 1
    assert any(f"test_export.py:{line})" in text for text in captured(flipped).warnings)


class Flipping:
    """A loss that is an object."""

    def __call__(self, model, x, y):
        return (model(x) - y.flip(0)).square().mean()


def weighed(weight, model, x, y):
    return weight * (model(x) - y.flip(0)).square().mean()


@pytest.mark.parametrize(
    ("loss", "function"), [(Flipping(), Flipping.__call__), (partial(weighed, 2.0), weighed)]
)
def test_a_loss_that_is_an_object_or_a_partial_call_has_lines_too(loss, function):
    line = function.__code__.co_firstlineno + 1
    assert any(f"test_export.py:{line})" in text for text in captured(loss).warnings)


def test_pytorch_keeps_what_it_kept_before():
    before = getattr(proxy, ANCHORS)
    with loss_lines(flipped):
        assert len(getattr(proxy, ANCHORS)) == len(before) + 1
    assert getattr(proxy, ANCHORS) is before
    with loss_lines(torch.nn.MSELoss()):
        assert getattr(proxy, ANCHORS) is before


# Compiled modules are captured as the modules that they wrap.
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


@cache
def captured_plainly():
    return capture(step, name="m")


@pytest.mark.parametrize("build", [whole, part, in_place])
def test_the_graph_is_that_of_the_model_without_compilation(build):
    compiled, plain = capture(build, name="m"), captured_plainly()
    assert compiled.ops == plain.ops
    assert compiled.tensors == plain.tensors


@pytest.mark.parametrize("build", [whole, part])
def test_the_placed_step_trains_what_was_wrapped(build):
    assert compare_steps(build()).within(0.0)


def test_a_hook_of_the_wrapper_is_called():
    model, inputs, loss = part()
    model.layers[1].register_forward_hook(lambda *call: call[-1] * 2)
    assert compare_steps((model, inputs, loss)).within(0.0)


class Turning(nn.Module):
    """Turns by angles that are no buffer, brought to the device and type of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.angles = torch.polar(torch.ones(6, 2), torch.arange(12.0).view(6, 2))
        self.scale = torch.full((4,), 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(self.layer(x).view(-1, 2, 2))
        turned = torch.view_as_real(pairs * self.angles.to(x.device)).flatten(1)
        return turned * self.scale.to(x.dtype).cpu()


@pytest.mark.parametrize("training", [True, False])
def test_plain_attributes_may_be_brought_to_where_they_are(training: bool) -> None:
    loss = (lambda model, x: model(x).sum()) if training else None
    graph = capture(lambda: (Turning(), torch.ones(6, 4), loss), training=training, name="turning")
    assert sum(op.persistent for op in graph.ops if op.kind != "parameter") >= 112
