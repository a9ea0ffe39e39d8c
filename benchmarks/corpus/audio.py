"""Audio models of transformers, and models of time series."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import (
    BATCH,
    Configuration,
    classes,
    ids,
    transformers_models,
)

SAMPLES = 1600


def spoken(config: Any, training: bool) -> dict[str, Any]:
    """Sounds and their words."""
    sound = {"input_values": torch.randn(BATCH, SAMPLES)}
    return sound | {"labels": torch.randint(1, 32, (BATCH, 6))} if training else sound


def recognised(config: Any, training: bool) -> dict[str, Any]:
    """Sounds, each of a class."""
    sound = {"input_values": torch.randn(BATCH, SAMPLES)}
    return sound | {"labels": classes(config.num_labels)} if training else sound


def features(config: Any, training: bool) -> dict[str, Any]:
    """Frames of sound of as many bands as the model has, and their words."""
    frames = {"input_features": torch.randn(BATCH, 64, config.input_feat_per_channel)}
    labels = ids(config.vocab_size, BATCH, 8)
    return frames | ({"labels": labels} if training else {"decoder_input_ids": labels})


def spectrogram(config: Any, training: bool) -> dict[str, Any]:
    """Bands of sound, and their words."""
    frames = {
        "input_features": torch.randn(BATCH, config.num_mel_bins, 2 * config.max_source_positions)
    }
    labels = ids(config.vocab_size, BATCH, 8)
    return frames | ({"labels": labels} if training else {"decoder_input_ids": labels})


def bands(config: Any, training: bool) -> dict[str, Any]:
    """Bands of sound, each of a class."""
    sound = {"input_values": torch.randn(BATCH, config.max_length, config.num_mel_bins)}
    return sound | {"labels": classes(config.num_labels)} if training else sound


def transcribed(config: Any, training: bool) -> dict[str, Any]:
    """Sounds and their transcripts, word by word."""
    sound = {"input_values": torch.randn(BATCH, SAMPLES)}
    labels = ids(config.vocab_size, BATCH, 8)
    return sound | ({"labels": labels} if training else {"decoder_input_ids": labels})


def samples(config: Any, training: bool) -> dict[str, Any]:
    """Sounds of one channel, which a model codes and decodes."""
    return {"input_values": torch.randn(BATCH, 1, 320)}


def described_sound(config: Any, training: bool) -> dict[str, Any]:
    """Sounds and their descriptions."""
    words = ids(config.text_config.vocab_size, BATCH, 8)
    return {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "input_features": torch.randn(BATCH, 1, 64, config.audio_config.num_mel_bins),
        **({"return_loss": True} if training else {}),
    }


def music(config: Any, training: bool) -> dict[str, Any]:
    """Descriptions, and the codes of music."""
    words = ids(config.text_encoder.vocab_size, BATCH, 8)
    codes = torch.randint(30, (BATCH * config.decoder.num_codebooks, 6))
    result = {"input_ids": words, "attention_mask": torch.ones_like(words)}
    labels = torch.randint(30, (BATCH, 6, config.decoder.num_codebooks))
    return result | ({"labels": labels} if training else {"decoder_input_ids": codes})


def past(config: Any, training: bool) -> dict[str, Any]:
    """Values of the past, and of the future where it is learned."""
    channels = config.num_input_channels
    values = {"past_values": torch.randn(BATCH, config.context_length, channels)}
    future = {"future_values": torch.randn(BATCH, config.prediction_length, channels)}
    return values | future if training else values


def seasons(config: Any, training: bool) -> dict[str, Any]:
    """The same, with the times."""
    length = config.context_length + max(config.lags_sequence)
    return {
        "past_values": torch.randn(BATCH, length),
        "past_time_features": torch.randn(BATCH, length, 1),
        "past_observed_mask": torch.ones(BATCH, length),
        "future_values": torch.randn(BATCH, config.prediction_length),
        "future_time_features": torch.randn(BATCH, config.prediction_length, 1),
    }


def played(config: Any, training: bool) -> dict[str, Any]:
    """States, actions and rewards of a game."""
    steps = 6
    return {
        "states": torch.randn(BATCH, steps, config.state_dim),
        "actions": torch.randn(BATCH, steps, config.act_dim),
        "rewards": torch.randn(BATCH, steps, 1),
        "returns_to_go": torch.randn(BATCH, steps, 1),
        "timesteps": torch.arange(steps).repeat(BATCH, 1),
        "attention_mask": torch.ones(BATCH, steps),
    }


def configurations() -> list[Configuration]:
    """All of this module."""
    return transformers_models("audio", globals())
