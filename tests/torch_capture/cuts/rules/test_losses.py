"""Letters of a cross entropy."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
LOGITS = torch.randn(6, 12)
LOGS = torch.log_softmax(LOGITS, 1)
TARGET = torch.tensor([0, 3, 11, 7, 3, 5])
WEIGHT = torch.rand(12)


# Parts exchange a maximum and a sum for each sample.
def test_a_softmax_is_cut_along_its_classes() -> None:
    assert len(check_all(aten._log_softmax.default, LOGITS, 1, False)) == 2
    gradient = torch.randn(6, 12)
    op = aten._log_softmax_backward_data.default
    assert len(check_all(op, gradient, LOGS, 1, torch.float64)) == 2


@pytest.mark.parametrize("reduction", [1, 2])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("ignored", [-100, 3, 5])
def test_parts_of_a_loss_ignore_the_classes_of_others(reduction, weight, ignored) -> None:
    args = (LOGS, TARGET, weight, reduction, ignored)
    assert len(check_all(aten.nll_loss_forward.default, *args)) == 2
    _, total = aten.nll_loss_forward.default(*args)
    backward = aten.nll_loss_backward.default
    assert len(check_all(backward, torch.ones(()), *args, total)) == 2


def test_losses_of_each_sample_have_no_letters() -> None:
    assert OneOp(aten.nll_loss_forward.default, LOGS, TARGET, None, 0, -100).letters() == []
