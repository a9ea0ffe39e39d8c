"""Losses of margins are traced as the kernels that eager PyTorch runs."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

LABEL = torch.tensor([1, 2, 3])
LABELS = torch.tensor([[1, 2, -1, 0, 0], [3, -1, 0, 0, 0], [-1, 0, 0, 0, 0]])

LOSSES = {
    "multilabel_margin_loss_forward": (LABELS, F.multilabel_margin_loss),
    "multi_margin_loss": (LABEL, F.multi_margin_loss),
}


def build(name: str, **how: object):
    """A layer, and the loss of its margins."""
    labels, function = LOSSES[name]
    torch.manual_seed(0)
    inputs = (torch.randn(3, 5), labels)
    return nn.Linear(5, 5), inputs, lambda model, x, y: function(model(x), y, **how).sum()


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_placed_step_is_equal_to_the_last_bit(name, how):
    model, inputs, loss = build(name, reduction=how)
    step = partial(placed_step, given=(inputs, loss))
    assert compare(model, inputs, loss, sgd, step, threads=1).within(0.0)


@pytest.mark.parametrize("name", LOSSES)
def test_there_is_one_op_each_way(name):
    kinds = [op.kind for op in capture(partial(build, name), name="m").ops]
    kernel = name.removesuffix("_forward")
    made = [kind for kind in kinds if "margin" in kind]
    assert made == [f"aten.{name}", f"aten.{kernel}_backward"]
