"""Encoders of transformers, with labels, and encoder-decoders."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import (
    BATCH,
    LENGTH,
    Built,
    Configuration,
    classes,
    ids,
    named_settings,
    returned,
    tokenized,
    transformers_models,
)

PICTURE = 32


def masked(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences, and the words behind their masks."""
    words = tokenized(config)
    return words | {"labels": ids(config.vocab_size)} if training else words


def sentence(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences, each of a class."""
    words = tokenized(config)
    return words | {"labels": classes(config.num_labels)} if training else words


def words(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences, each word of a class."""
    result = tokenized(config)
    labels = classes(config.num_labels, BATCH, LENGTH)
    return result | {"labels": labels} if training else result


def answers(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Questions whose answers are a span."""
    result = tokenized(config)
    span = {"start_positions": classes(LENGTH), "end_positions": classes(LENGTH)}
    return result | span if training else result


def boxes(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Words of a page, where they stand, and the class of each."""
    return words(config, training) | {
        "bbox": torch.tensor([1, 2, 10, 12]).expand(BATCH, LENGTH, 4).contiguous()
    }


def page(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """The same beside the page's picture."""
    return boxes(config, training) | {"pixel_values": torch.randn(BATCH, 3, PICTURE, PICTURE)}


def translated(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences and their translations."""
    result = tokenized(config)
    name = "labels" if training else "decoder_input_ids"
    return result | {name: ids(config.vocab_size)}


def letters(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Texts of code points, each of a class."""
    text = torch.randint(32, 1000, (BATCH, 64))
    result = {"input_ids": text, "attention_mask": torch.ones_like(text)}
    return result | {"labels": classes(config.num_labels)} if training else result


def bert2bert(training: bool) -> Built:
    """Two BERTs, the second of which reads the first."""
    from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

    small = named_settings("small")
    both = EncoderDecoderConfig.from_encoder_decoder_configs(
        BertConfig(**small), BertConfig(**small, is_decoder=True, add_cross_attention=True)
    )
    both.decoder_start_token_id, both.pad_token_id = 1, 0
    inputs = translated(both.encoder, training)
    return EncoderDecoderModel(config=both).train(training), inputs, returned


def configurations() -> list[Configuration]:
    """All of this module."""
    return [
        *transformers_models("encoders", globals()),
        Configuration("EncoderDecoderModel", "transformers", "encoder-decoder", bert2bert),
    ]
