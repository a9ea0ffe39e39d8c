"""Ops of the loss know the line of the program that calls them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.fx import proxy  # noqa: E402

from situate.torch_capture.patches.loss_lines import ANCHORS, loss_lines  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402


def flipped(model, x, y):
    return (model(x) - y.flip(0)).square().mean()


def test_a_warning_of_the_loss_names_its_line():
    line = flipped.__code__.co_firstlineno + 1
    assert any(f"test_loss_lines.py:{line})" in text for text in captured(flipped).warnings)


def test_pytorch_keeps_what_it_kept_before():
    before = getattr(proxy, ANCHORS)
    with loss_lines(flipped):
        assert len(getattr(proxy, ANCHORS)) == len(before) + 1
    assert getattr(proxy, ANCHORS) is before
    with loss_lines(torch.nn.MSELoss()):
        assert getattr(proxy, ANCHORS) is before
