"""A step may draw from distributions and ask for their densities."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import distributions, nn  # noqa: E402
from torch.distributions import Categorical, Normal  # noqa: E402

from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture.patches.distributions import arguments_unchecked  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

X = (torch.randn(3, 5, generator=torch.Generator().manual_seed(0)),)
STEPS = {
    "density": lambda y, x: -Normal(y, y.exp()).log_prob(x).mean(),
    "drawn": lambda y, x: Normal(y, y.exp()).rsample().square().mean(),
    "chosen": lambda y, x: Categorical(logits=y).log_prob(x.argmax(-1)).mean(),
    "uncertain": lambda y, x: Categorical(y.softmax(-1)).entropy().mean(),
    "apart": lambda y, x: distributions.kl_divergence(Normal(y, y.exp()), Normal(x, 1.0)).mean(),
}


@pytest.mark.parametrize("of", STEPS)
def test_a_placed_step_is_equal_to_the_last_bit(of):
    def loss(model, x):
        return STEPS[of](model(x), x)

    torch.manual_seed(0)
    step = partial(placed_step, given=(X, loss))
    assert compare(nn.Linear(5, 5), X, loss, sgd, step, threads=1).within(0.0)


@pytest.mark.parametrize("checked", [True, False])
def test_distributions_check_as_before(checked, monkeypatch):
    monkeypatch.setattr(distributions.Distribution, "_validate_args", checked)
    with arguments_unchecked():
        Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="scale") if checked else nullcontext():
        Normal(0.0, -1.0)
