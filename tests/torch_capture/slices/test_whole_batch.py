"""Reductions of a loss, and warnings where slices differ from the whole batch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402

# The reduction of a loss follows from its ops, or the op at fault is named.
MEANS = {
    "reduced by its kernel": lambda m, x, y: F.mse_loss(m(x), y),
    "reduced by an op": lambda m, x, y: F.l1_loss(m(x), y),
    "a sum by the batch's size": lambda m, x, y: ((m(x) - y) ** 2).sum() / len(x),
    "features first": lambda m, x, y: ((m(x) - y) ** 2).sum(1).mean(),
    "samples first": lambda m, x, y: ((m(x) - y) ** 2).mean(0).sum(),
    "divergence": lambda m, x, y: F.kl_div(
        m(x).log_softmax(1), y.softmax(1), reduction="batchmean"
    ),
    "with a penalty on weights": lambda m, x, y: F.mse_loss(m(x), y) + m.weight.pow(2).sum(),
    "of two parts": lambda m, x, y: 0.4 * F.mse_loss(m(x), y) - m(x).mean(),
}

SUMS = {
    "reduced by its kernel": lambda m, x, y: F.mse_loss(m(x), y, reduction="sum"),
    "by a number": lambda m, x, y: ((m(x) - y) ** 2).sum() / 7,
    "a mean by the batch's size": lambda m, x, y: F.mse_loss(m(x), y) * len(x),
}

NEITHER = {
    "aten.sqrt": lambda m, x, y: F.mse_loss(m(x), y).sqrt(),
    "aten.add": lambda m, x, y: F.mse_loss(m(x), y, reduction="sum") + m.weight.pow(2).sum(),
    "aten.div": lambda m, x, y: ((m(x) - y) ** 2 * y.gt(0)).sum() / y.gt(0).sum(),
    "aten.max": lambda m, x, y: (m(x) - y).abs().max(),
    "aten.mul": lambda m, x, y: F.mse_loss(m(x), y) * len(x) ** 2,
}


@pytest.mark.parametrize("how", MEANS)
def test_a_mean_over_samples_is_recognised(how):
    assert captured(MEANS[how]).slices.loss == "mean"


@pytest.mark.parametrize("how", SUMS)
def test_a_sum_over_samples_is_recognised(how):
    assert captured(SUMS[how]).slices.loss == "sum"


@pytest.mark.parametrize("op", NEITHER)
def test_a_loss_that_is_neither_names_the_op(op):
    with pytest.raises(
        SituateError, match=rf"and {op} \(loss.*\) stands in the way: .*--slice-loss mean"
    ):
        captured(NEITHER[op], shares=(3, 1))
    assert captured(NEITHER[op], shares=(3, 1), loss="mean").slices.loss == "mean"


def test_weights_of_classes_make_it_no_mean_over_samples():
    loss = nn.CrossEntropyLoss(weight=torch.ones(3))
    with pytest.raises(SituateError, match=r"aten.nll_loss_forward .* weighs samples by"):
        captured(lambda m, x, y: loss(m(x), y.argmax(1)))


# Every way in which slices differ from the batch appears in a warning or a refusal.
def mse(model, x, y):
    return F.mse_loss(model(x), y)


def slice_warnings(loss, **more):
    """The warnings about slices, except that of the trial on random numbers."""
    warnings = captured(loss, **more).warnings
    return [t for t in warnings if t.startswith("slices: ") and "on random numbers" not in t]


def test_samples_that_stay_apart_are_not_spoken_of():
    apart = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Dropout(), nn.Linear(8, 3))
    assert slice_warnings(mse, model=apart) == []


def test_batch_norms_have_statistics_of_a_slice():
    norms = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3), nn.BatchNorm1d(3))
    (text,) = slice_warnings(mse, model=norms)
    assert "each slice has statistics of its own" in text
    assert "(2 ops, the first of 0" in text


def test_a_batch_norm_that_infers_and_an_instance_norm_depend_on_no_batch():
    still = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3))
    still[0].eval()
    assert slice_warnings(mse, model=still) == []
    model = nn.Sequential(
        nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2), nn.Flatten(), nn.Linear(6, 3)
    )
    assert slice_warnings(mse, model=model) == []


def test_a_loss_over_pairs_is_named():
    def contrastive(model, x, y):
        return F.cross_entropy(model(x) @ y.t(), torch.arange(len(x)))

    (text,) = slice_warnings(contrastive)
    assert "aten.mm relates every sample to those of its slice" in text


@pytest.mark.parametrize("mix", ["flip", "roll"])
def test_shuffled_samples_are_named(mix):
    def mixed(model, x, y):
        return mse(model, x + (x.flip(0) if mix == "flip" else x.roll(1, 0)), y)

    (text,) = slice_warnings(mixed)
    assert f"aten.{mix} relates" in text


def test_a_mean_that_goes_back_into_the_model_is_named():
    (text,) = slice_warnings(lambda m, x, y: F.mse_loss(m(x) - m(x).mean(0), y))
    assert "aten.mean takes in all samples of a slice" in text


def test_a_buffer_of_the_samples_is_named():
    class Averaging(nn.Linear):
        def __init__(self):
            super().__init__(6, 3)
            self.register_buffer("average", torch.zeros(3))

        def forward(self, x):
            out = super().forward(x)
            self.average.mul_(0.9).add_(out.detach().mean(0))
            return out

    (text,) = slice_warnings(mse, model=Averaging())
    assert text == "slices: buffer 'average' is written by every slice, one after the other"


def test_buffers_of_the_samples_share_a_warning():
    class Averaging(nn.Linear):
        def __init__(self):
            super().__init__(6, 3)
            for k in range(5):
                self.register_buffer(f"average{k}", torch.zeros(3))

        def forward(self, x):
            out = super().forward(x)
            for average in self.buffers():
                average.mul_(0.9).add_(out.detach().mean(0))
            return out

    (text,) = slice_warnings(mse, model=Averaging())
    assert text == (
        "slices: buffers 'average0', 'average1', 'average2' and 2 others are written by every "
        "slice, one after the other"
    )


def test_a_loss_module_is_named_by_its_class_and_the_line_that_made_it():
    def build():
        weighed = nn.CrossEntropyLoss(weight=torch.ones(3))
        return nn.Linear(6, 3), (torch.randn(8, 6), torch.randint(0, 3, (8,))), weighed

    line = build.__code__.co_firstlineno + 1
    with pytest.raises(
        SituateError, match=rf"\(loss, CrossEntropyLoss, .*test_whole_batch\.py:{line}\) stands"
    ):
        capture(build, slices=Slices((1, 1)))


def test_a_view_by_the_size_of_the_batch_is_refused():
    with pytest.raises(
        SituateError, match=r"aten.view \(loss.*\) deals out the samples of the batch anew"
    ):
        captured(lambda m, x, y: F.mse_loss(m(x).view(4, -1), y.view(4, -1)))


def test_a_size_that_no_slice_has_is_refused_with_its_line():
    with pytest.raises(
        SituateError, match=r"test_whole_batch.py:\d+: .* not on 4 of its 8 samples"
    ):
        captured(lambda m, x, y: F.mse_loss(m(x.view(8, 6)), y))
