"""Attention masks and shared keys and values of transformers."""

from __future__ import annotations

from functools import cache, partial

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.patches.transformers_attention import (  # noqa: E402
    MaskDecisions,
    heads_share,
    masks_as_run,
    masks_left_out,
    repeated,
)
from tests.runtime.placing import placed_step, sgd  # noqa: E402


# Masks are those of a model that runs.
def forecast():
    """A network that cannot add the mask which transformers makes of it while it is exported."""
    config = transformers.InformerConfig(
        prediction_length=4,
        context_length=12,
        lags_sequence=[1, 2],
        num_time_features=1,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
    )
    past, future = torch.zeros(2, 14), torch.zeros(2, 4)
    inputs = {
        "past_values": past,
        "past_time_features": past[..., None],
        "past_observed_mask": torch.ones(2, 14),
        "future_values": future,
        "future_time_features": future[..., None],
    }
    return transformers.InformerForPrediction(config), inputs, None


def test_a_model_that_takes_no_mask_is_captured():
    assert capture(forecast, training=False, name="forecast").ops


def words(mask=None):
    """A network that cannot add the mask which transformers makes of one that is not known."""
    config = transformers.NystromformerConfig(
        vocab_size=16,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_landmarks=2,
        segment_means_seq_len=8,
    )
    model = transformers.NystromformerModel(config)
    ids = torch.ones(1, 8, dtype=torch.int64)
    inputs = {"input_ids": ids} | ({} if mask is None else {"attention_mask": mask})
    return model, inputs, lambda model, **batch: model(**batch).last_hidden_state.mean()


def test_a_mask_of_known_ones_is_left_out():
    assert capture(words, name="words").ops


def test_where_a_mask_that_is_not_known_fails_it_is_said_to_leave_it_out():
    with pytest.raises(SituateError, match=r"the line is transformers's own: leave the attention"):
        capture(lambda: words(torch.ones(1, 8)), name="words")


def test_where_a_mask_of_an_input_fails_that_hides_nothing_it_is_left_out():
    graph = capture(lambda: words(torch.ones(1, 8, dtype=torch.int64)), name="words")
    [warning] = graph.warnings
    assert "the values of input 'attention_mask' alone" in warning
    with pytest.raises(SituateError, match="leave the attention mask out"):
        capture(lambda: words(torch.arange(8)[None] // 4), name="words")


def test_masks_are_again_as_before():
    from transformers import masking_utils

    before = masking_utils.is_torchdynamo_exporting
    with masks_as_run():
        assert not masking_utils.is_torchdynamo_exporting()
    assert masking_utils.is_torchdynamo_exporting is before


HEADS, SHARED = 4, 2


# Keys and values stay shared among heads.
def build(window: int = 32):
    """A Mistral of one layer that reads 16 tokens."""
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        sliding_window=window,
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        num_key_value_heads=SHARED,
    )
    tokens = torch.randint(0, 50, (2, 16))
    return (
        transformers.MistralForCausalLM(config),
        (tokens,),
        lambda model, x: model(x, labels=x, use_cache=False).loss,
    )


@cache
def compare_window(window: int, padding: int | None, cast: bool):
    """The comparison of a placed step, where the first sentence ends in `padding` padded tokens."""
    model, (tokens,), _ = build(window)
    inputs = {"input_ids": tokens}
    if padding is not None:
        inputs["attention_mask"] = torch.ones_like(tokens)
        inputs["attention_mask"][0, 16 - padding :] = 0

    def loss(model, input_ids, **masks):
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            return model(input_ids, **masks, labels=input_ids, use_cache=False).loss

    step = partial(placed_step, given=(inputs, loss))
    return compare(model, inputs, loss, sgd, step, threads=1)


@pytest.mark.parametrize(("window", "cast"), [(8, True), (32, False)])
def test_a_placed_step_is_equal_to_the_last_bit(window, cast):
    assert compare_window(window, None, cast).within(0.0)


def test_each_layer_repeats_keys_and_values_as_its_own_mask_asks():
    """Without padding, the layer of full attention has no mask, and the one with a window has."""
    torch.manual_seed(0)
    config = transformers.Gemma3TextConfig(
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"],
        vocab_size=50,
        hidden_size=32,
        head_dim=8,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=SHARED,
    )
    tokens = torch.randint(0, 50, (2, 16))
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}

    def loss(model, **inputs):
        with torch.autocast("cpu", torch.bfloat16):
            return model(**inputs, labels=inputs["input_ids"], use_cache=False).loss

    step = partial(placed_step, given=(inputs, loss))
    model = transformers.Gemma3ForCausalLM(config)
    assert compare(model, inputs, loss, sgd, step, threads=1).within(0.0)


def test_keys_and_values_that_stay_shared_are_not_named():
    assert compare_window(32, None, False).decomposed == ()


def test_what_transformers_repeats_for_tokens_that_are_padded_is_named():
    result = compare_window(32, 4, False)
    assert result.within(1e-6)
    assert result.decomposed == (
        "attention of transformers with a mask and shared keys and values",
    )


def test_keys_and_values_are_not_repeated():
    graph = capture(build, name="m")
    attention = {j for j, op in enumerate(graph.ops) if "flash_attention" in op.kind}
    producer_kinds = {
        graph.ops[t.producer].kind for t in graph.tensors if attention & {*t.consumers}
    }
    assert "aten.mm" in producer_kinds
    assert "aten.clone" not in producer_kinds


def test_what_transformers_does_is_as_before():
    attention = pytest.importorskip("transformers.integrations.sdpa_attention")
    before = attention.use_gqa_in_sdpa
    with heads_share(MaskDecisions()), repeated():
        assert attention.use_gqa_in_sdpa is not before
    assert attention.use_gqa_in_sdpa is before


# Masks that only a trace keeps are named.
LEFT_OUT = ("masks of transformers where nothing is padded",)


def padding_build(padded: bool = False):
    """A BERT of one layer whose attention is computed op by op, and sentences of 16 tokens."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        attn_implementation="eager",
    )
    mask = torch.ones(2, 16, dtype=torch.long)
    mask[0, 12:] = 1 - padded
    inputs = {"input_ids": torch.randint(0, 50, (2, 16)), "attention_mask": mask}
    return transformers.BertForMaskedLM(config), inputs


def padding_compared(cast: bool, padded: bool):
    model, inputs = padding_build(padded)

    def loss(model, **inputs):
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            return model(**inputs, labels=inputs["input_ids"]).loss

    step = partial(placed_step, given=(inputs, loss))
    return compare(model, inputs, loss, sgd, step, threads=1)


# The trace keeps the mask. Its zeros change nothing but the type of an autocast region's scores.


def test_a_mask_that_only_a_trace_has_is_named_under_autocast():
    equality = padding_compared(cast=True, padded=False)
    assert equality.decomposed == LEFT_OUT
    assert not equality.within(0.0)
    assert equality.within(1e-2)


@pytest.mark.parametrize(("cast", "padded"), [(False, False), (False, True), (True, True)])
def test_a_mask_that_changes_no_number_is_not_named(cast, padded):
    equality = padding_compared(cast, padded)
    assert equality.decomposed == ()
    assert equality.within(0.0)


def test_transformers_decides_as_before_afterwards():
    masks = pytest.importorskip("transformers.masking_utils")
    before = masks._ignore_bidirectional_mask_sdpa
    with masks_left_out():
        assert masks._ignore_bidirectional_mask_sdpa is not before
    assert masks._ignore_bidirectional_mask_sdpa is before
