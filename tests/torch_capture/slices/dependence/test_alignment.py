"""The ops of a slice beside those of the whole batch, also where a slice has one sample."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.torch_capture.build import build_fake  # noqa: E402
from situate.torch_capture.slices.cut import Cut  # noqa: E402
from situate.torch_capture.slices.dependence.alignment import aligned  # noqa: E402
from situate.torch_capture.slices.traces import Traces  # noqa: E402
from tests.torch_capture.slices.dependence.judge import (  # noqa: E402
    ROUNDING,
    Step,
    difference,
    verdict,
)


class Positions(nn.Module):
    """Positions that are added to every sample, as in transformers."""

    def __init__(self):
        super().__init__()
        self.place, self.out = nn.Parameter(torch.randn(1, 6)), nn.Linear(6, 6)

    def forward(self, x):
        return self.out((x + self.place).tanh() * self.place)


def mse(model, x, y):
    return F.mse_loss(model(x), y)


def traces(samples, loss=mse):
    """The trace of a slice, and the trace of the batch of 8."""

    def build():
        return Positions(), (torch.randn(8, 6), torch.randn(8, 6)), loss

    both = Traces(build_fake(build, "model"), "model")
    return both.parts(Cut((samples,) * (8 // samples), (0, 0)))[0], both.whole


# Each op of the batch's trace finds its counterpart, or the traces are not comparable.
@pytest.mark.parametrize("samples", [1, 2, 4])
def test_every_op_of_the_batch_has_one_of_the_slice(samples):
    part, whole = traces(samples)
    alignment = aligned(part, whole)
    assert list(alignment.whole.values()) == list(whole.graph.nodes)
    assert list(alignment.whole) == list(alignment.part.graph.nodes)
    assert set(alignment.copies) == set(part.graph.nodes)


def test_a_slice_of_one_sample_lacks_the_sums_over_samples():
    part, whole = traces(1)
    assert len(part.graph.nodes) < len(whole.graph.nodes)
    assert len(aligned(part, whole).part.graph.nodes) == len(whole.graph.nodes)


def test_other_ops_are_not_aligned():
    def loss(model, x, y):
        return mse(model, x, y) if len(x) == 8 else mse(model, x, y) * 2

    assert aligned(*traces(1, loss)) is None


@pytest.mark.parametrize("shares", [(1,) * 8, (4, 4), (7, 1)])
def test_parameters_that_are_added_to_every_sample_train_alike(shares):
    step = Step(mse, model=Positions)
    warnings = verdict(step, shares)
    assert warnings.is_silent, warnings
    assert difference(step, shares, warnings.loss) < ROUNDING
