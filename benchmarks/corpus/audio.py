"""Audio models of transformers, and models of time series."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import (
    BATCH,
    Configuration,
    Inputs,
    classes,
    ids,
    squares,
    transformers_model,
)
from benchmarks.corpus.decoders import WORDS
from benchmarks.corpus.encoders import BART, T5
from benchmarks.corpus.vision import LAYERS

SAMPLES = 1600
WAVES = LAYERS | {
    "vocab_size": 32,
    "conv_dim": [16, 16, 16],
    "conv_kernel": [10, 3, 3],
    "conv_stride": [5, 4, 4],
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "mask_time_length": 2,
    "classifier_proj_size": 16,
}
CODEC = {
    "target_bandwidths": [1.5, 3.0],
    "sampling_rate": 1600,
    "hidden_size": 16,
    "num_filters": 4,
    "upsampling_ratios": [4, 4],
    "codebook_size": 32,
    "num_lstm_layers": 1,
}
SERIES = {
    "prediction_length": 4,
    "context_length": 12,
    "lags_sequence": [1, 2],
    "num_time_features": 1,
    "d_model": 16,
}
PATCHED = {"context_length": 32, "patch_length": 8, "patch_stride": 8, "prediction_length": 8}


def spoken(config: Any, training: bool) -> dict[str, Any]:
    """Sounds and what is said in them."""
    sound = {"input_values": torch.randn(BATCH, SAMPLES)}
    return sound | {"labels": torch.randint(1, 32, (BATCH, 6))} if training else sound


def recognised(config: Any, training: bool) -> dict[str, Any]:
    """Sounds, each of a class."""
    sound = {"input_values": torch.randn(BATCH, SAMPLES)}
    return sound | {"labels": classes(config.num_labels)} if training else sound


def features(config: Any, training: bool) -> dict[str, Any]:
    """Frames of sound of as many bands as the model has, and what is said in them."""
    frames = {"input_features": torch.randn(BATCH, 64, config.input_feat_per_channel)}
    said = ids(config.vocab_size, BATCH, 8)
    return frames | ({"labels": said} if training else {"decoder_input_ids": said})


def spectrogram(config: Any, training: bool) -> dict[str, Any]:
    """Bands of sound, and what is said in them."""
    frames = {
        "input_features": torch.randn(BATCH, config.num_mel_bins, 2 * config.max_source_positions)
    }
    said = ids(config.vocab_size, BATCH, 8)
    return frames | ({"labels": said} if training else {"decoder_input_ids": said})


def bands(config: Any, training: bool) -> dict[str, Any]:
    """Bands of sound, each of a class."""
    sound = {"input_values": torch.randn(BATCH, config.max_length, config.num_mel_bins)}
    return sound | {"labels": classes(config.num_labels)} if training else sound


def transcribed(config: Any, training: bool) -> dict[str, Any]:
    """Sounds and what is said in them, word by word."""
    sound = {"input_values": torch.randn(BATCH, SAMPLES)}
    said = ids(config.vocab_size, BATCH, 8)
    return sound | ({"labels": said} if training else {"decoder_input_ids": said})


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
    found = {"input_ids": words, "attention_mask": torch.ones_like(words)}
    labels = torch.randint(30, (BATCH, 6, config.decoder.num_codebooks))
    return found | ({"labels": labels} if training else {"decoder_input_ids": codes})


def past(config: Any, training: bool) -> dict[str, Any]:
    """Values of the past, and of the future where it is learned."""
    channels = config.num_input_channels
    values = {"past_values": torch.randn(BATCH, config.context_length, channels)}
    future = {"future_values": torch.randn(BATCH, config.prediction_length, channels)}
    return values | future if training else values


def seasons(config: Any, training: bool) -> dict[str, Any]:
    """The same, with what time it was."""
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


AUDIO: list[tuple[str, Inputs, dict[str, Any], Any]] = [
    ("Wav2Vec2ForCTC", spoken, WAVES, None),
    ("Wav2Vec2ForSequenceClassification", recognised, WAVES, None),
    ("HubertForCTC", spoken, WAVES, None),
    ("WavLMForSequenceClassification", recognised, WAVES | {"num_buckets": 16}, None),
    ("SEWForSequenceClassification", recognised, WAVES, None),
    ("Data2VecAudioForSequenceClassification", recognised, WAVES, None),
    (
        "WhisperForConditionalGeneration",
        spectrogram,
        BART
        | {"num_mel_bins": 16, "max_source_positions": 32, "max_target_positions": 32}
        | {"begin_suppress_tokens": None},
        None,
    ),
    (
        "Speech2TextForConditionalGeneration",
        features,
        BART
        | {"input_feat_per_channel": 16, "conv_channels": 32}
        | {"max_source_positions": 64, "max_target_positions": 64},
        None,
    ),
    (
        "SpeechT5ForSpeechToText",
        transcribed,
        WAVES
        | {
            "vocab_size": 81,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 128,
            "decoder_ffn_dim": 128,
        },
        None,
    ),
    (
        "ASTForAudioClassification",
        bands,
        LAYERS | {"num_mel_bins": 32, "max_length": 64, "patch_size": 16},
        None,
    ),
    ("EncodecModel", samples, CODEC, squares("audio_values")),
    (
        "MusicgenForConditionalGeneration",
        music,
        {
            "text_encoder": T5 | {"model_type": "t5"},
            "audio_encoder": CODEC | {"model_type": "encodec"},
            "decoder": {
                "vocab_size": 32,
                "hidden_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "ffn_dim": 128,
                "max_position_embeddings": 64,
                "num_codebooks": 2,
                "pad_token_id": 31,
                "bos_token_id": 31,
                "decoder_start_token_id": 31,
            },
        },
        None,
    ),
    (
        "ClapModel",
        described_sound,
        {
            "text_config": LAYERS | WORDS | {"max_position_embeddings": 64, "projection_dim": 32},
            "audio_config": {
                "spec_size": 64,
                "num_mel_bins": 16,
                "window_size": 2,
                "depths": [1, 1, 1],
                "num_hidden_layers": 3,
                "num_attention_heads": [2, 2, 4],
                "patch_embeds_hidden_size": 16,
                "hidden_size": 64,
                "projection_dim": 32,
            },
            "projection_dim": 32,
        },
        None,
    ),
    (
        "MoonshineForConditionalGeneration",
        transcribed,
        WORDS
        | {
            "hidden_size": 64,
            "intermediate_size": 128,
            "encoder_num_hidden_layers": 2,
            "decoder_num_hidden_layers": 2,
            "encoder_num_attention_heads": 4,
            "decoder_num_attention_heads": 4,
            "decoder_start_token_id": 1,
        },
        None,
    ),
]

TIMES: list[tuple[str, Inputs, dict[str, Any], Any]] = [
    ("PatchTSTForPrediction", past, PATCHED | {"d_model": 32, "ffn_dim": 64}, None),
    ("PatchTSMixerForPrediction", past, PATCHED | {"num_input_channels": 2}, None),
    ("InformerForPrediction", seasons, SERIES, None),
    ("AutoformerForPrediction", seasons, SERIES | {"label_length": 4}, None),
    ("TimeSeriesTransformerForPrediction", seasons, SERIES, None),
    ("DecisionTransformerModel", played, {"hidden_size": 32}, None),
]


def configurations() -> list[Configuration]:
    """All of this module."""
    losses = {"DecisionTransformerModel": squares("action_preds", "state_preds")}
    return [
        transformers_model(
            kind,
            model,
            inputs,
            settings,
            **({"loss": loss or losses[model]} if loss or model in losses else {}),
        )
        for kind, entries in (("audio", AUDIO), ("time series", TIMES))
        for model, inputs, settings, loss in entries
    ]
