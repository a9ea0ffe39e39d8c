"""Every loss of torch.nn, in every reduction, with weights, masks and ignored labels. A step
without a warning trains the same in slices as on the whole batch."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.torch_capture.slices.dependence.judge import (  # noqa: E402
    ROUNDING,
    Step,
    difference,
    verdict,
)

N, C = 8, 6


def _numbers():
    return torch.randn(N, C), torch.randn(N, C)


def _positive():
    return torch.randn(N, C), torch.rand(N, C) + 0.1


def _labels():
    return torch.randn(N, C), torch.randint(C, (N,))


def _left_out():
    x, y = _labels()
    y[:3] = -100
    return x, y


def _of_tokens():
    return torch.randn(N, 4, C), torch.randint(C, (N, 4))


def _tokens_left_out():
    x, y = _of_tokens()
    y[:2, 1:] = -100
    return x, y


def _signs():
    return torch.randn(N, C), torch.randint(2, (N, C)) * 2.0 - 1


def _signs_of_samples():
    return torch.randn(N, C), torch.randint(2, (N,)) * 2.0 - 1


def _sets():
    y = torch.full((N, C), -1)
    y[:, :2] = torch.randint(C, (N, 2))
    return torch.randn(N, C), y


def _masked():
    return torch.randn(N, C), torch.randn(N, C), (torch.rand(N, C) > 0.4).float()


WEIGHT = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.5, 0.2])

LOSSES: dict[str, tuple[Any, Any]] = {
    "L1Loss": (nn.L1Loss, _numbers),
    "MSELoss": (nn.MSELoss, _numbers),
    "HuberLoss": (nn.HuberLoss, _numbers),
    "SmoothL1Loss": (nn.SmoothL1Loss, _numbers),
    "PoissonNLLLoss": (nn.PoissonNLLLoss, _positive),
    "KLDivLoss": (nn.KLDivLoss, _positive),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, _labels),
    "CrossEntropyLoss smoothed": (
        lambda reduction: nn.CrossEntropyLoss(label_smoothing=0.1, reduction=reduction),
        _labels,
    ),
    "CrossEntropyLoss of probabilities": (
        nn.CrossEntropyLoss,
        lambda: (torch.randn(N, C), torch.rand(N, C).softmax(1)),
    ),
    "CrossEntropyLoss weighted": (
        lambda reduction: nn.CrossEntropyLoss(WEIGHT, reduction=reduction),
        _labels,
    ),
    "CrossEntropyLoss that leaves out": (nn.CrossEntropyLoss, _left_out),
    "CrossEntropyLoss that leaves out a class": (
        lambda reduction: nn.CrossEntropyLoss(ignore_index=2, reduction=reduction),
        _labels,
    ),
    "CrossEntropyLoss smoothed that leaves out": (
        lambda reduction: nn.CrossEntropyLoss(label_smoothing=0.1, reduction=reduction),
        _left_out,
    ),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, _positive),
    "BCEWithLogitsLoss weighted": (
        lambda reduction: nn.BCEWithLogitsLoss(WEIGHT, pos_weight=WEIGHT, reduction=reduction),
        _positive,
    ),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, _signs),
    "SoftMarginLoss": (nn.SoftMarginLoss, _signs),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, _sets),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, _positive),
    "MultiLabelSoftMarginLoss weighted": (
        lambda reduction: nn.MultiLabelSoftMarginLoss(WEIGHT, reduction=reduction),
        _positive,
    ),
    "MultiMarginLoss": (nn.MultiMarginLoss, _labels),
    "MultiMarginLoss weighted": (
        lambda reduction: nn.MultiMarginLoss(weight=WEIGHT, reduction=reduction),
        _labels,
    ),
    "NLLLoss": (lambda reduction: _after(nn.NLLLoss(reduction=reduction), _log), _labels),
    "NLLLoss weighted": (
        lambda reduction: _after(nn.NLLLoss(WEIGHT, reduction=reduction), _log),
        _labels,
    ),
    "NLLLoss that leaves out": (
        lambda reduction: _after(nn.NLLLoss(reduction=reduction), _log),
        _left_out,
    ),
    "BCELoss": (
        lambda reduction: _after(nn.BCELoss(reduction=reduction), torch.sigmoid),
        lambda: (torch.randn(N, C), torch.rand(N, C)),
    ),
    "BCELoss weighted": (
        lambda reduction: _after(nn.BCELoss(WEIGHT, reduction=reduction), torch.sigmoid),
        lambda: (torch.randn(N, C), torch.rand(N, C)),
    ),
    "CrossEntropyLoss of tokens": (
        lambda reduction: _flat(nn.CrossEntropyLoss(reduction=reduction)),
        _of_tokens,
    ),
    "CrossEntropyLoss of tokens that leaves out": (
        lambda reduction: _flat(nn.CrossEntropyLoss(reduction=reduction)),
        _tokens_left_out,
    ),
    "CrossEntropyLoss of tokens, classes second": (
        lambda reduction: _classes_second(nn.CrossEntropyLoss(reduction=reduction)),
        _tokens_left_out,
    ),
    "CosineEmbeddingLoss": (
        lambda reduction: _of_pairs(nn.CosineEmbeddingLoss(reduction=reduction)),
        _signs_of_samples,
    ),
    "MarginRankingLoss": (
        lambda reduction: _of_pairs(nn.MarginRankingLoss(0.3, reduction=reduction)),
        _signs,
    ),
    "TripletMarginLoss": (
        lambda reduction: _of_triplets(nn.TripletMarginLoss(reduction=reduction)),
        _numbers,
    ),
    "TripletMarginWithDistanceLoss": (
        lambda reduction: _of_triplets(nn.TripletMarginWithDistanceLoss(reduction=reduction)),
        _numbers,
    ),
    "GaussianNLLLoss": (
        lambda reduction: (
            lambda z, y: nn.GaussianNLLLoss(reduction=reduction)(z, y, z.detach().square() + 0.1)
        ),
        _numbers,
    ),
}


def _log(z):
    return z.log_softmax(1)


def _after(loss, first):
    return lambda z, y: loss(first(z), y)


def _flat(loss):
    return lambda z, y: loss(z.flatten(0, 1), y.flatten())


def _classes_second(loss):
    return lambda z, y: loss(z.transpose(1, 2), y)


def _of_pairs(loss):
    return lambda z, y: loss(z, z.tanh().detach() + 0.2, y)


def _of_triplets(loss):
    return lambda z, y: loss(z, y, z.detach().cos())


# Each loss of PyTorch, with each reduction, is exact in slices or named.
REDUCTIONS = {
    "mean": lambda make, z, *y: make(reduction="mean")(z, *y),
    "sum": lambda make, z, *y: make(reduction="sum")(z, *y),
    "sum by samples": lambda make, z, *y: make(reduction="sum")(z, *y) / len(z),
    "none, mean": lambda make, z, *y: make(reduction="none")(z, *y).mean(),
    "none, divided first": lambda make, z, *y: (make(reduction="none")(z, *y) / len(z)).sum(),
}

EXACT = ("sum", "none, mean", "none, divided first", "sum by samples")
"""Reductions in which every sample counts alike."""

UNEQUAL = ("leaves out", "tokens", "Gaussian")
"""Parts of names of losses that may be warned of, or refused, in these too."""


DIVIDED = ("sum by samples", "none, divided first")
"""Reductions whose last op is a division, which is the same for all losses."""

KINDS = {
    *("MSELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "CrossEntropyLoss weighted"),
    *("CrossEntropyLoss that leaves out", "CrossEntropyLoss of tokens that leaves out"),
    *("NLLLoss", "MultiMarginLoss", "CosineEmbeddingLoss", "GaussianNLLLoss"),
}
"""Losses of each kind, for the reductions in `DIVIDED`."""


def _cases() -> Iterator[Any]:
    for name, (make, inputs) in LOSSES.items():
        for how, reduce in REDUCTIONS.items():
            if how in DIVIDED and name not in KINDS:
                continue
            shares = (3, 1) if how == "sum" else (1, 1)

            def loss(model, x, *y, make=make, reduce=reduce):
                return reduce(make, model(x), *y)

            is_exact = how in EXACT and not any(part in name for part in UNEQUAL)
            yield pytest.param(Step(loss, inputs=inputs), shares, is_exact, id=f"{name}, {how}")


@pytest.mark.parametrize(("step", "shares", "is_exact"), _cases())
def test_a_loss_is_right_or_warned_of_or_refused(step, shares, is_exact):
    warnings = verdict(step, shares)
    assert warnings.is_silent or not is_exact, warnings
    if warnings.is_silent:
        assert difference(step, shares, warnings.loss) < ROUNDING


def test_the_table_has_every_loss_of_torch():
    loss_names = {name for name, kind in vars(nn).items() if name.endswith("Loss")}
    loss_names = {n for n in loss_names if inspect.isclass(getattr(nn, n))}
    apart = {"CTCLoss", "NLLLoss2d", "AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss"}
    assert loss_names - apart <= {name.split()[0] for name in LOSSES}
