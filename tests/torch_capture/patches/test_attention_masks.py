"""transformers makes the masks of a step that is captured as of one that runs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.patches.attention_masks import masks_as_run  # noqa: E402


def forecast():
    """A network that cannot add the mask which transformers makes of it while it is exported."""
    config = transformers.InformerConfig(
        prediction_length=4,
        context_length=12,
        lags_sequence=[1, 2],
        num_time_features=1,
        d_model=16,
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
    given = {"input_ids": ids} | ({} if mask is None else {"attention_mask": mask})
    return model, given, lambda model, **batch: model(**batch).last_hidden_state.mean()


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
