"""transformers makes the masks of a step that is captured as of one that runs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from situate.readers.torch import capture  # noqa: E402
from situate.readers.torch.masks import masks_as_run  # noqa: E402


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


def test_masks_are_again_as_before():
    from transformers import masking_utils

    before = masking_utils.is_torchdynamo_exporting
    with masks_as_run():
        assert not masking_utils.is_torchdynamo_exporting()
    assert masking_utils.is_torchdynamo_exporting is before
