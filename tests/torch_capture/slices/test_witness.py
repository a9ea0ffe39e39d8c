"""Steps of slices that are tried on random numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.torch_capture import Captures  # noqa: E402
from situate.torch_capture.build import build_fake  # noqa: E402
from situate.torch_capture.slices.cut import Cut  # noqa: E402
from situate.torch_capture.slices.traces import Traces  # noqa: E402

HALVES = Cut((4, 4), (0, 0))


def mse(model, x, y):
    return F.mse_loss(model(x), y)


def mirrored(model, x, y):
    out = model(x)
    return F.mse_loss(out * out.flip(0), y)


def doubled_if_few(model, x, y):
    """A loss that changes for fewer samples than a slice of the captured step has."""
    return mse(model, x, y) * (2 if len(x) < 3 else 1)


def build(loss, model=None):
    return lambda: (model or nn.Linear(6, 3), (torch.randn(8, 6), torch.randn(8, 3)), loss)


def run_witness(loss, model=None, reduction="mean", check=True):
    traces = Traces(build_fake(build(loss, model), "model"), "model", check)
    return traces.witness(traces.parts(HALVES)[0], HALVES, reduction)


# The gradients agree to within rounding if the slices train what the batch trains, and only then.
def test_slices_of_a_mean_differ_by_rounding():
    result = run_witness(mse)
    assert result.difference <= result.tolerance
    assert result.line == ""


def test_samples_that_are_related_differ_by_more():
    result = run_witness(mirrored)
    assert result.difference > 100 * result.tolerance
    assert result.line.startswith(
        f"slices: on random numbers, with 6 samples, the gradient of '{result.name}'"
    )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_that_is_taken_for_another_differs(reduction):
    result = run_witness(lambda m, x, y: F.mse_loss(m(x), y, reduction="sum"), reduction=reduction)
    assert (result.line == "") == (reduction == "sum")


def test_chance_tells_no_steps_apart():
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(), nn.Linear(8, 3))
    assert run_witness(lambda m, x, y: mse(m, x + torch.rand_like(x), y), model).line == ""


def test_numbers_of_16_bits_may_differ_by_more():
    low = run_witness(lambda m, x, y: F.mse_loss(m(x).bfloat16(), y.bfloat16()))
    assert run_witness(mse).tolerance < low.tolerance


# Steps that cannot run on a few samples give no verdict.
def test_a_step_that_fails_at_another_size_gives_none():
    def four_or_eight(model, x, y):
        return mse(model, x.view(4 if len(x) == 4 else 8, 6), y)

    assert run_witness(four_or_eight) is None


def test_a_gradient_that_is_no_number_gives_none():
    assert run_witness(lambda m, x, y: mse(m, x, y) * torch.tensor(torch.nan)) is None


def test_a_step_that_takes_positive_numbers_alone_is_tried_on_such():
    assert run_witness(lambda m, x, y: mse(m, x.log(), y)).line == ""
    assert run_witness(lambda m, x, y: mirrored(m, x.log(), y)).line != ""


def test_the_model_stays_as_it_is():
    layers = nn.Sequential(*(nn.Linear(6, 6) for _ in range(4)), nn.Linear(6, 3))
    traces = Traces(build_fake(build(mse, layers), "model"), "model", True)
    before = [*traces.fake.model.named_modules()]
    assert traces.witness(traces.parts(HALVES)[0], HALVES, "mean").line == ""
    assert [*traces.fake.model.named_modules()] == before


# The trial uses small inputs, and leaves the model alone.
def shapes_tried(model, inputs):
    """The shapes of the first input in the steps that are tried."""
    shapes = []

    def loss(model, x, y):
        shapes.append(tuple(x.shape))
        return model(x).mean(1).sub(y).square().mean()

    traces = Traces(build_fake(lambda: (model, inputs, loss), "model"), "model", True)
    part = traces.parts(HALVES)[0]
    shapes.clear()
    trial = traces.witness(part, HALVES, "mean")
    assert trial is None or trial.line == ""
    return shapes


# The sizes of a step that is tried: few operations, and as its model takes them.
def test_long_sequences_are_cut():
    class Language(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.embed, self.head = nn.Embedding(50, width), nn.Linear(width, 5)

        def forward(self, x):
            return self.head(self.embed(x)).flatten(1)

    inputs = torch.ones(8, 100, dtype=torch.int64), torch.randn(8)
    assert shapes_tried(Language(4), inputs) == [(6, 64), (4, 64), (2, 64)]


def test_large_images_are_halved_where_the_model_takes_others():
    inputs = torch.randn(8, 3, 128, 160), torch.randn(8)
    convolution = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten())
    assert shapes_tried(convolution, inputs) == [(n, 3, 64, 80) for n in (6, 4, 2)]

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(160, 2)

        def forward(self, x):
            return self.last(x).flatten(1)

    # Once in 64 bits and once in its own is the half tried.
    assert shapes_tried(Whole(), inputs)[-3:] == [(n, 3, 128, 160) for n in (6, 4, 2)]


def test_a_capture_warns_of_it_unless_it_is_not_to_be_tried():
    def warnings(check):
        slices = Slices((1, 1))
        return Captures(check=check).capture(build(doubled_if_few), slices=slices).warnings

    (text,) = warnings(True)
    assert text.startswith("slices: on random numbers, with 6 samples, the gradient of ")
    assert warnings(False) == ()
    assert run_witness(doubled_if_few, check=False) is None
