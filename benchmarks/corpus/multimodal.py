"""Models of transformers that read pictures and words."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import (
    BATCH,
    PIXELS,
    Built,
    Configuration,
    Inputs,
    classes,
    ids,
    named_settings,
    pictures,
    returned,
    transformers_models,
)

LENGTH = 24
IMAGE = 3
"""The word that stands for a piece of a picture."""


def contrasted(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and their descriptions."""
    words = ids(config.text_config.vocab_size, BATCH, 16)
    words[:, -1] = 2
    result = {"input_ids": words, "attention_mask": torch.ones_like(words)}
    pixels = {"pixel_values": pictures(config.vision_config.image_size)}
    return result | pixels | ({"return_loss": True} if training else {})


def captioned(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and their captions, which are their own labels."""
    vocabulary = getattr(config, "vocab_size", None) or config.text_config.vocab_size
    words = ids(vocabulary, BATCH, 16)
    size = config.vision_config.image_size
    result = {"pixel_values": pictures(size), "input_ids": words}
    result["attention_mask"] = torch.ones_like(words)
    return result | {"labels": words} if training else result


def talked(pieces: int, pixels: int = PIXELS) -> Inputs:
    """Conversations in which a picture stands as so many words."""

    def inputs(config: Any, training: bool) -> dict[str, Any]:
        words = ids(100, BATCH, LENGTH)
        words[:, 1 : 1 + pieces] = IMAGE
        result = {"input_ids": words, "attention_mask": torch.ones_like(words)}
        result["pixel_values"] = pictures(pixels)
        return result | {"labels": words} if training else result

    return inputs


def looked(config: Any, training: bool) -> dict[str, Any]:
    """Conversations about one picture of four patches by four, in pieces of two by two."""
    vision = config.vision_config
    words = ids(100, 1, LENGTH)
    words[:, 1] = config.vision_start_token_id
    words[:, 2:6] = IMAGE
    size = 3 * vision.temporal_patch_size * vision.patch_size**2
    result = {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": torch.randn(16, size),
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
        "mm_token_type_ids": (words == IMAGE).long(),
    }
    return result | {"labels": words} if training else result


def several(config: Any, training: bool) -> dict[str, Any]:
    """Conversations about pictures, a list of them each."""
    result = talked(4)(config, training)
    return result | {"pixel_values": result["pixel_values"][:, None]}


def tiles(config: Any, training: bool) -> dict[str, Any]:
    """Conversations about pictures that are cut into tiles, of which there is one each."""
    words = ids(100, BATCH, LENGTH)
    result = {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": torch.randn(BATCH, 1, 1, 3, PIXELS, PIXELS),
        "aspect_ratio_ids": torch.ones(BATCH, 1, dtype=torch.long),
        "aspect_ratio_mask": torch.ones(BATCH, 1, 1, dtype=torch.long),
        "cross_attention_mask": torch.ones(BATCH, LENGTH, 1, 1, dtype=torch.long),
    }
    return result | {"labels": words} if training else result


def asked(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and questions about them, with answers to choose from."""
    words = ids(config.vocab_size, BATCH, 16)
    result = {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": pictures(),
        "pixel_mask": torch.ones(BATCH, PIXELS, PIXELS, dtype=torch.long),
    }
    return result | {"labels": torch.rand(BATCH, config.num_labels)} if training else result


def instructed(config: Any, training: bool) -> dict[str, Any]:
    """The same as `talked`, with the question for the model between the two."""
    result = talked(config.num_query_tokens)(config, training)
    question = ids(100, BATCH, 8)
    return result | {
        "qformer_input_ids": question,
        "qformer_attention_mask": torch.ones_like(question),
    }


def paired(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and words for a model with none of its own losses."""
    words = ids(config.text_config.vocab_size, BATCH, 16)
    return {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": pictures(),
    }


def embeddings(model: torch.nn.Module, **batch: Any) -> Any:
    """A loss of a model's outputs for both."""
    result: Any = model(**batch)
    return sum(part.square().mean() for part in (result.image_embeddings, result.text_embeddings))


def tagged(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and words, which agree or do not."""
    words = ids(config.text_config.vocab_size, BATCH, 16)
    result = {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": pictures(),
        "pixel_mask": torch.ones(BATCH, PIXELS, PIXELS, dtype=torch.long),
    }
    return result | {"labels": classes(2)} if training else result


def captions(training: bool) -> Built:
    """A ViT whose pictures a GPT-2 describes."""
    from transformers import (
        GPT2Config,
        VisionEncoderDecoderConfig,
        VisionEncoderDecoderModel,
        ViTConfig,
    )

    both = VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        ViTConfig(**named_settings("patches")),
        GPT2Config(**named_settings("gpt"), is_decoder=True, add_cross_attention=True),
    )
    both.decoder_start_token_id, both.pad_token_id = 1, 0
    labels = {"labels" if training else "decoder_input_ids": ids(128, BATCH, 8)}
    model = VisionEncoderDecoderModel(config=both).train(training)
    return model, {"pixel_values": pictures()} | labels, returned


def two_towers(training: bool) -> Built:
    """A ViT and a BERT whose pictures and descriptions are brought together."""
    from transformers import (
        BertConfig,
        VisionTextDualEncoderConfig,
        VisionTextDualEncoderModel,
        ViTConfig,
    )

    both = VisionTextDualEncoderConfig.from_vision_text_configs(
        ViTConfig(**named_settings("patches")),
        BertConfig(**named_settings("small")),
        projection_dim=32,
    )
    model = VisionTextDualEncoderModel(both).train(training)
    return model, contrasted(both, training), returned


def configurations() -> list[Configuration]:
    """All of this module."""
    return [
        *transformers_models("multimodal", globals()),
        Configuration("VisionEncoderDecoderModel", "transformers", "multimodal", captions),
        Configuration("VisionTextDualEncoderModel", "transformers", "multimodal", two_towers),
    ]
