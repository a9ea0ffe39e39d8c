"""Checks of values that a library or a distribution makes."""

from __future__ import annotations

import importlib.util
from contextlib import nullcontext
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import (  # noqa: E402
    distributions,
    nn,
)
from torch.distributions import Categorical, Normal  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture.patches.value_checks import (  # noqa: E402
    arguments_unchecked,
    tensors_unchecked,
)
from tests.readers.calling import X, mean, of  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402


# Checks of values by libraries pass.
class Checking(nn.Module):
    """A layer whose input must be positive."""

    def __init__(self, check):
        super().__init__()
        self.layer, self.check = nn.Linear(3, 3), check

    def forward(self, x):
        self.check(x > 0)
        return self.layer(x)


@pytest.mark.parametrize(
    "check",
    [
        lambda positive: torch._check_tensor_all(positive),
        lambda positive: torch._check_tensor_all_with(ValueError, positive, lambda: "must be"),
    ],
)
def test_a_placed_step_is_equal_to_the_last_bit(check):
    step = partial(placed_step, given=(X, mean))
    assert compare(Checking(check), X, mean, sgd, step, threads=1).within(0.0)


def test_a_model_that_reads_images_between_words_is_captured():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2}
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**sizes, **heads, image_size=16, patch_size=8),
        text_config=transformers.LlamaConfig(**sizes, **heads, vocab_size=50),
        image_token_id=5,
    )
    words = torch.tensor([[1, 5, 5, 5, 5, 2]])
    inputs = {"input_ids": words, "pixel_values": torch.ones(1, 3, 16, 16), "labels": words}

    def loss(model, **batch):
        return model(**batch, use_cache=False).loss

    model = transformers.LlavaForConditionalGeneration(config)
    step = partial(placed_step, given=(inputs, loss))
    assert compare(model, inputs, loss, sgd, step, threads=1).within(0.0)


def test_tensors_are_checked_as_before():
    with tensors_unchecked():
        torch._check_tensor_all(torch.tensor(False))
    with pytest.raises(RuntimeError):
        torch._check_tensor_all(torch.tensor(False))


LIBRARY = """
import torch

def clamped(x):
    if not torch.isfinite(x).all() or torch.isinf(x).any() or x.isnan().any():
        x = x.clamp(-1, 1)
    return x
"""


@pytest.fixture
def library(tmp_path):
    """A module of an installed package."""
    path = tmp_path / "site-packages" / "lib" / "clamping.py"
    path.parent.mkdir(parents=True)
    path.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("clamping", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_numbers_are_finite_where_a_library_looks(library):
    kinds = [op.kind for op in of(lambda model, x: library.clamped(model.layer(x)), False).ops]
    assert "aten.addmm" in kinds
    assert "aten.clamp" not in kinds


def test_where_the_step_looks_itself_it_is_refused():
    def step(model, x):
        return model.layer(x) if torch.isfinite(x).all() else x

    with pytest.raises(
        SituateError, match=r"test_value_checks\.py:\d+: what happens here depends on"
    ):
        of(step)


def test_what_a_library_computes_of_the_answer_is_computed(library):
    library.masked = lambda x: torch.where(torch.isfinite(x), x, 0.0)
    graph = of(lambda model, x: library.masked(model.layer(x)), False)
    assert "aten.where" in {op.kind for op in graph.ops}


def test_truth_is_pytorchs_behind_it():
    before = torch.Tensor.__bool__, torch.isfinite, torch.Tensor.all
    with tensors_unchecked():
        assert not torch.isfinite(torch.tensor([1.0, torch.inf])).all()
    assert (torch.Tensor.__bool__, torch.isfinite, torch.Tensor.all) == before


RANDOM_INPUTS = (torch.randn(3, 5, generator=torch.Generator().manual_seed(0)),)
# Distributions do not read the values of parameters and samples.
STEPS = {
    "density": lambda y, x: -Normal(y, y.exp()).log_prob(x).mean(),
    "drawn": lambda y, x: Normal(y, y.exp()).rsample().square().mean(),
    "chosen": lambda y, x: Categorical(logits=y).log_prob(x.argmax(-1)).mean(),
    "uncertain": lambda y, x: Categorical(y.softmax(-1)).entropy().mean(),
    "apart": lambda y, x: distributions.kl_divergence(Normal(y, y.exp()), Normal(x, 1.0)).mean(),
}


@pytest.mark.parametrize("of", STEPS)
def test_a_placed_step_is_equal_to_the_last_bit_distribution(of):
    def loss(model, x):
        return STEPS[of](model(x), x)

    torch.manual_seed(0)
    step = partial(placed_step, given=(RANDOM_INPUTS, loss))
    assert compare(nn.Linear(5, 5), RANDOM_INPUTS, loss, sgd, step, threads=1).within(0.0)


@pytest.mark.parametrize("checked", [True, False])
def test_distributions_check_as_before(checked, monkeypatch):
    monkeypatch.setattr(distributions.Distribution, "_validate_args", checked)
    with arguments_unchecked():
        Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="scale") if checked else nullcontext():
        Normal(0.0, -1.0)


# PyTorch's Gaussian loss checks its variance.
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_gaussian_loss_is_equal_to_the_last_bit(full, reduction):
    criterion = nn.GaussianNLLLoss(full=full, reduction=reduction)

    def loss(model, x):
        mean, spread, target = model(x).unbind(1)
        return criterion(mean, target.detach(), spread.square())

    step = partial(placed_step, given=(X, loss))
    assert compare(nn.Linear(3, 3), X, loss, sgd, step, threads=1).within(0.0)


def test_a_users_own_check_of_a_variance_is_refused():
    def negative(model, x):
        assert not torch.any(x < 0)
        return x.mean()

    with pytest.raises(SituateError, match=r"test_value_checks\.py:\d+: .*depends on the values"):
        of(negative)
