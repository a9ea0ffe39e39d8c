"""Small models of transformers and the inputs of a step; each model is called by keywords."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}

ModelInputs = tuple[Any, dict[str, torch.Tensor], str]
"""A model, its inputs by name, and the name of its result."""


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(3, 60, shape)


def vit() -> ModelInputs:
    config = transformers.ViTConfig(**SIZE, num_hidden_layers=6, image_size=16, patch_size=8)
    model = transformers.ViTForImageClassification(config)
    return model, {"pixel_values": torch.randn(2, 3, 16, 16)}, "logits"


def clip() -> ModelInputs:
    text = SIZE | {"num_hidden_layers": 3, "vocab_size": 64, "max_position_embeddings": 8}
    vision = SIZE | {"num_hidden_layers": 3, "image_size": 16, "patch_size": 8}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)
    inputs = {"input_ids": tokens(2, 6), "pixel_values": torch.randn(2, 3, 16, 16)}
    return transformers.CLIPModel(config), inputs, "logits_per_image"


def bert_with_labels() -> ModelInputs:
    """It does not bring the labels to the logits."""
    config = transformers.BertConfig(**SIZE, num_hidden_layers=4, vocab_size=64, num_labels=3)
    model = transformers.BertForSequenceClassification(config)
    return model, {"input_ids": tokens(2, 6), "labels": torch.tensor([0, 2])}, "loss"


def whisper_with_labels() -> ModelInputs:
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", 3), ("attention_heads", 2), ("ffn_dim", 64))
    }
    limits = {"max_source_positions": 8, "max_target_positions": 8, "num_mel_bins": 8}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = transformers.WhisperConfig(
        **sides, **limits, **ids, vocab_size=64, d_model=32, use_cache=False
    )
    model = transformers.WhisperForConditionalGeneration(config)
    return model, {"input_features": torch.randn(1, 8, 16), "labels": tokens(1, 6)}, "loss"


def t5_with_labels() -> ModelInputs:
    config = transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=16, d_ff=64, num_layers=3, num_heads=2, use_cache=False
    )
    config.decoder_start_token_id = 0
    model = transformers.T5ForConditionalGeneration(config)
    return model, {"input_ids": tokens(2, 6), "labels": tokens(2, 5)}, "loss"


MODELS: dict[str, Callable[[], ModelInputs]] = {
    make.__name__: make
    for make in (vit, clip, bert_with_labels, whisper_with_labels, t5_with_labels)
}
