"""Masks that transformers leaves out of a step where nothing is padded."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture.patches.padding_masks import masks_left_out  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

LEFT_OUT = ("masks of transformers where nothing is padded",)


def build(padded: bool = False):
    """A BERT of two layers whose attention is computed op by op, and sentences of 16 tokens."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        attn_implementation="eager",
    )
    mask = torch.ones(2, 16, dtype=torch.long)
    mask[0, 12:] = 1 - padded
    inputs = {"input_ids": torch.randint(0, 50, (2, 16)), "attention_mask": mask}
    return transformers.BertForMaskedLM(config), inputs


def compared(cast: bool, padded: bool):
    model, inputs = build(padded)

    def loss(model, **inputs):
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            return model(**inputs, labels=inputs["input_ids"]).loss

    step = partial(placed_step, given=(inputs, loss))
    return compare(model, inputs, loss, sgd, step, threads=1)


# The trace keeps the mask. Its zeros change nothing but the type of an autocast region's scores.


def test_a_mask_that_only_a_trace_has_is_named_under_autocast():
    equality = compared(cast=True, padded=False)
    assert equality.decomposed == LEFT_OUT
    assert not equality.within(0.0)
    assert equality.within(1e-2)


@pytest.mark.parametrize(("cast", "padded"), [(False, False), (False, True), (True, True)])
def test_a_mask_that_changes_no_number_is_not_named(cast, padded):
    equality = compared(cast, padded)
    assert equality.decomposed == ()
    assert equality.within(0.0)


def test_transformers_decides_as_before_afterwards():
    masks = pytest.importorskip("transformers.masking_utils")
    before = masks._ignore_bidirectional_mask_sdpa
    with masks_left_out():
        assert masks._ignore_bidirectional_mask_sdpa is not before
    assert masks._ignore_bidirectional_mask_sdpa is before
