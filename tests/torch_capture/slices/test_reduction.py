"""Losses that are means or sums over samples, and those that are neither."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402

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
