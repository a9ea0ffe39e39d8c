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
    pictures,
    returned,
    transformers_model,
)
from benchmarks.corpus.decoders import GPT, GROUPED, HEADS, SMALL, WORDS
from benchmarks.corpus.encoders import BART
from benchmarks.corpus.vision import LAYERS, PATCHES

LENGTH = 24
IMAGE = 3
"""The word that stands for a piece of a picture."""

PAIR = {
    "text_config": LAYERS | WORDS | {"max_position_embeddings": 64},
    "vision_config": PATCHES,
    "projection_dim": 32,
}
BLIP2 = {
    "vision_config": PATCHES,
    "qformer_config": SMALL | {"encoder_hidden_size": 64},
    "text_config": SMALL | {"model_type": "opt", "ffn_dim": 128, "word_embed_proj_dim": 64},
    "num_query_tokens": 4,
    "image_token_index": IMAGE,
}
QWEN = WORDS | {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 1e4},
}
QWEN_WORDS = {
    "image_token_id": IMAGE,
    "video_token_id": 127,
    "vision_start_token_id": 126,
    "vision_end_token_id": 125,
}


def contrasted(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and their descriptions."""
    words = ids(config.text_config.vocab_size, BATCH, 16)
    words[:, -1] = 2
    found = {"input_ids": words, "attention_mask": torch.ones_like(words)}
    pixels = {"pixel_values": pictures(config.vision_config.image_size)}
    return found | pixels | ({"return_loss": True} if training else {})


def captioned(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and their captions, which are their own labels."""
    vocabulary = getattr(config, "vocab_size", None) or config.text_config.vocab_size
    words = ids(vocabulary, BATCH, 16)
    size = config.vision_config.image_size
    found = {"pixel_values": pictures(size), "input_ids": words}
    found["attention_mask"] = torch.ones_like(words)
    return found | {"labels": words} if training else found


def talked(pieces: int, pixels: int = PIXELS) -> Inputs:
    """Conversations in which a picture stands as so many words."""

    def inputs(config: Any, training: bool) -> dict[str, Any]:
        words = ids(100, BATCH, LENGTH)
        words[:, 1 : 1 + pieces] = IMAGE
        found = {"input_ids": words, "attention_mask": torch.ones_like(words)}
        found["pixel_values"] = pictures(pixels)
        return found | {"labels": words} if training else found

    return inputs


def looked(config: Any, training: bool) -> dict[str, Any]:
    """Conversations about one picture of four patches by four, in pieces of two by two."""
    vision = config.vision_config
    words = ids(100, 1, LENGTH)
    words[:, 1] = config.vision_start_token_id
    words[:, 2:6] = IMAGE
    size = 3 * vision.temporal_patch_size * vision.patch_size**2
    found = {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": torch.randn(16, size),
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
        "mm_token_type_ids": (words == IMAGE).long(),
    }
    return found | {"labels": words} if training else found


def several(config: Any, training: bool) -> dict[str, Any]:
    """Conversations about pictures, a list of them each."""
    found = talked(4)(config, training)
    return found | {"pixel_values": found["pixel_values"][:, None]}


def tiles(config: Any, training: bool) -> dict[str, Any]:
    """Conversations about pictures that are cut into tiles, of which there is one each."""
    words = ids(100, BATCH, LENGTH)
    found = {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": torch.randn(BATCH, 1, 1, 3, PIXELS, PIXELS),
        "aspect_ratio_ids": torch.ones(BATCH, 1, dtype=torch.long),
        "aspect_ratio_mask": torch.ones(BATCH, 1, 1, dtype=torch.long),
        "cross_attention_mask": torch.ones(BATCH, LENGTH, 1, 1, dtype=torch.long),
    }
    return found | {"labels": words} if training else found


def asked(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and questions about them, with answers to choose from."""
    words = ids(config.vocab_size, BATCH, 16)
    found = {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": pictures(),
        "pixel_mask": torch.ones(BATCH, PIXELS, PIXELS, dtype=torch.long),
    }
    return found | {"labels": torch.rand(BATCH, config.num_labels)} if training else found


def instructed(config: Any, training: bool) -> dict[str, Any]:
    """The same as `talked`, with the question for the model between the two."""
    found = talked(config.num_query_tokens)(config, training)
    question = ids(100, BATCH, 8)
    return found | {
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
    """A loss of what a model makes of both."""
    found: Any = model(**batch)
    return sum(part.square().mean() for part in (found.image_embeddings, found.text_embeddings))


def tagged(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and words, which agree or do not."""
    words = ids(config.text_config.vocab_size, BATCH, 16)
    found = {
        "input_ids": words,
        "attention_mask": torch.ones_like(words),
        "pixel_values": pictures(),
        "pixel_mask": torch.ones(BATCH, PIXELS, PIXELS, dtype=torch.long),
    }
    return found | {"labels": classes(2)} if training else found


MODELS: list[tuple[str, Inputs, dict[str, Any], Any]] = [
    ("CLIPModel", contrasted, PAIR, None),
    (
        "SiglipModel",
        contrasted,
        {"text_config": PAIR["text_config"], "vision_config": PATCHES},
        None,
    ),
    (
        "BlipForConditionalGeneration",
        captioned,
        {
            "text_config": LAYERS
            | WORDS
            | {"max_position_embeddings": 64, "encoder_hidden_size": 64, "sep_token_id": 2},
            "vision_config": PATCHES,
        },
        None,
    ),
    (
        "Blip2ForConditionalGeneration",
        talked(4),
        BLIP2,
        None,
    ),
    (
        "InstructBlipForConditionalGeneration",
        instructed,
        BLIP2,
        None,
    ),
    (
        "LlavaForConditionalGeneration",
        talked(16),
        {
            "vision_config": PATCHES | {"model_type": "clip_vision_model"},
            "text_config": GROUPED | {"model_type": "llama"},
            "image_token_index": IMAGE,
            "image_seq_length": 16,
        },
        None,
    ),
    (
        "PaliGemmaForConditionalGeneration",
        talked(16),
        {
            "vision_config": PATCHES | {"model_type": "siglip_vision_model"},
            "text_config": HEADS | {"model_type": "gemma", "num_image_tokens": 16},
            "image_token_index": IMAGE,
            "projection_dim": 64,
            "hidden_size": 64,
        },
        None,
    ),
    (
        "Gemma3ForConditionalGeneration",
        talked(4),
        {
            "vision_config": PATCHES | {"model_type": "siglip_vision_model"},
            "text_config": HEADS | {"sliding_window": 8},
            "mm_tokens_per_image": 4,
            "image_token_index": IMAGE,
        },
        None,
    ),
    (
        "Qwen2VLForConditionalGeneration",
        looked,
        QWEN_WORDS
        | {
            "vision_config": {
                "depth": 2,
                "embed_dim": 32,
                "hidden_size": 64,
                "num_heads": 4,
                "patch_size": 4,
            },
            "text_config": QWEN,
        },
        None,
    ),
    (
        "Qwen2_5_VLForConditionalGeneration",
        looked,
        QWEN_WORDS
        | {
            "vision_config": {
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 64,
                "out_hidden_size": 64,
                "num_heads": 4,
                "patch_size": 4,
                "window_size": 16,
                "fullatt_block_indexes": [1],
            },
            "text_config": QWEN,
        },
        None,
    ),
    (
        "Qwen3VLForConditionalGeneration",
        looked,
        QWEN_WORDS
        | {
            "vision_config": {
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 64,
                "out_hidden_size": 64,
                "num_heads": 4,
                "patch_size": 4,
                "num_position_embeddings": 16,
                "deepstack_visual_indexes": [0],
            },
            "text_config": QWEN | {"head_dim": 16},
        },
        None,
    ),
    (
        "Idefics3ForConditionalGeneration",
        several,
        {
            "vision_config": PATCHES,
            "text_config": GROUPED | {"model_type": "llama"},
            "image_token_id": IMAGE,
            "scale_factor": 2,
        },
        None,
    ),
    (
        "InternVLForConditionalGeneration",
        talked(4),
        {
            "vision_config": PATCHES | {"image_size": [PIXELS, PIXELS], "patch_size": [8, 8]},
            "text_config": GROUPED | {"model_type": "qwen2"},
            "image_token_id": IMAGE,
            "image_seq_length": 4,
        },
        None,
    ),
    (
        "MllamaForConditionalGeneration",
        tiles,
        {
            "vision_config": {
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_global_layers": 1,
                "attention_heads": 4,
                "image_size": PIXELS,
                "patch_size": 8,
                "max_num_tiles": 1,
                "vision_output_dim": 64,
                "intermediate_layers_indices": [0],
                "supported_aspect_ratios": [[1, 1]],
            },
            "text_config": GROUPED | {"cross_attention_layers": [1]},
            "image_token_index": IMAGE,
        },
        None,
    ),
    (
        "Florence2ForConditionalGeneration",
        talked(5, 64),
        {
            "vision_config": {
                "depths": [1, 1, 1, 1],
                "embed_dim": [8, 16, 24, 32],
                "num_heads": [2, 2, 4, 4],
                "num_groups": [2, 2, 4, 4],
                "window_size": 2,
                "projection_dim": 64,
            },
            "text_config": BART | {"model_type": "bart"},
            "image_token_id": IMAGE,
        },
        None,
    ),
    (
        "ViltForQuestionAnswering",
        asked,
        SMALL | {"image_size": PIXELS, "patch_size": 8, "num_labels": 5},
        None,
    ),
    (
        "FlavaModel",
        paired,
        {
            "image_config": PATCHES,
            "text_config": SMALL,
            "multimodal_config": LAYERS,
            "hidden_size": 64,
            "projection_dim": 32,
        },
        embeddings,
    ),
    (
        "GitForCausalLM",
        captioned,
        SMALL | {"vision_config": PATCHES},
        None,
    ),
    (
        "BridgeTowerForImageAndTextRetrieval",
        tagged,
        {
            "text_config": SMALL,
            "vision_config": {
                "hidden_size": 64,
                "num_hidden_layers": 2,
                "patch_size": 8,
                "image_size": PIXELS,
            },
            "hidden_size": 64,
            "num_attention_heads": 4,
            "num_hidden_layers": 2,
        },
        None,
    ),
]


def captions(training: bool) -> Built:
    """A ViT whose pictures a GPT-2 describes."""
    from transformers import (
        GPT2Config,
        VisionEncoderDecoderConfig,
        VisionEncoderDecoderModel,
        ViTConfig,
    )

    both = VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        ViTConfig(**PATCHES), GPT2Config(**GPT, is_decoder=True, add_cross_attention=True)
    )
    both.decoder_start_token_id, both.pad_token_id = 1, 0
    said = {"labels" if training else "decoder_input_ids": ids(128, BATCH, 8)}
    model = VisionEncoderDecoderModel(config=both).train(training)
    return model, {"pixel_values": pictures()} | said, returned


def two_towers(training: bool) -> Built:
    """A ViT and a BERT whose pictures and descriptions are brought together."""
    from transformers import (
        BertConfig,
        VisionTextDualEncoderConfig,
        VisionTextDualEncoderModel,
        ViTConfig,
    )

    both = VisionTextDualEncoderConfig.from_vision_text_configs(
        ViTConfig(**PATCHES), BertConfig(**SMALL), projection_dim=32
    )
    model = VisionTextDualEncoderModel(both).train(training)
    return model, contrasted(both, training), returned


def configurations() -> list[Configuration]:
    """All of this module."""
    return [
        *(
            transformers_model(
                "multimodal", model, inputs, settings, **({"loss": loss} if loss else {})
            )
            for model, inputs, settings, loss in MODELS
        ),
        Configuration("VisionEncoderDecoderModel", "transformers", "multimodal", captions),
        Configuration("VisionTextDualEncoderModel", "transformers", "multimodal", two_towers),
    ]
