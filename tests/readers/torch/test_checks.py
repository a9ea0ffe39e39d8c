"""A step may check the values of its tensors as PyTorch and transformers do."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.readers.torch.checks import tensors_unchecked  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from tests.readers.calling import X, mean  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402


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
