"""Encoders of transformers, with labels, and encoder-decoders."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import (
    BATCH,
    LENGTH,
    Built,
    Configuration,
    Inputs,
    classes,
    ids,
    returned,
    tokenized,
    transformers_model,
)
from benchmarks.corpus.decoders import HEADS, SMALL, WORDS

BART = WORDS | {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
}
T5 = WORDS | {
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
BOXES = SMALL | {"max_2d_position_embeddings": 64}
PICTURE = 32


def masked(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences, and what stands behind their masks."""
    words = tokenized(config)
    return words | {"labels": ids(config.vocab_size)} if training else words


def sentence(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences, each of a class."""
    words = tokenized(config)
    return words | {"labels": classes(config.num_labels)} if training else words


def words(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences, each word of a class."""
    found = tokenized(config)
    labels = classes(config.num_labels, BATCH, LENGTH)
    return found | {"labels": labels} if training else found


def answers(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Questions whose answers are a span."""
    found = tokenized(config)
    span = {"start_positions": classes(LENGTH), "end_positions": classes(LENGTH)}
    return found | span if training else found


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
    found = tokenized(config)
    name = "labels" if training else "decoder_input_ids"
    return found | {name: ids(config.vocab_size)}


def letters(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Texts of code points, each of a class."""
    text = torch.randint(32, 1000, (BATCH, 64))
    found = {"input_ids": text, "attention_mask": torch.ones_like(text)}
    return found | {"labels": classes(config.num_labels)} if training else found


ENCODERS: list[tuple[str, Inputs, dict[str, Any]]] = [
    ("BertForMaskedLM", masked, SMALL),
    ("BertForSequenceClassification", sentence, SMALL),
    ("BertForQuestionAnswering", answers, SMALL),
    ("RobertaForSequenceClassification", sentence, SMALL),
    ("XLMRobertaForTokenClassification", words, SMALL),
    (
        "DistilBertForSequenceClassification",
        sentence,
        WORDS | {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128},
    ),
    ("AlbertForMaskedLM", masked, SMALL | {"embedding_size": 32}),
    ("ElectraForMaskedLM", masked, SMALL | {"embedding_size": 32}),
    (
        "DebertaForSequenceClassification",
        sentence,
        SMALL | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    ),
    (
        "DebertaV2ForSequenceClassification",
        sentence,
        SMALL
        | {
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 16,
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
        },
    ),
    (
        "ModernBertForMaskedLM",
        masked,
        SMALL | {"local_attention": 8, "cls_token_id": 1, "sep_token_id": 2},
    ),
    ("MPNetForSequenceClassification", sentence, SMALL),
    ("LongformerForSequenceClassification", sentence, SMALL | {"attention_window": [8, 8]}),
    (
        "BigBirdForSequenceClassification",
        sentence,
        SMALL | {"attention_type": "block_sparse", "block_size": 2, "num_random_blocks": 1},
    ),
    (
        "FunnelForSequenceClassification",
        sentence,
        WORDS
        | {"block_sizes": [1, 1], "d_model": 64, "n_head": 4, "d_head": 16, "d_inner": 128}
        | {"num_decoder_layers": 1},
    ),
    ("FNetForMaskedLM", masked, SMALL),
    (
        "NystromformerForMaskedLM",
        masked,
        SMALL | {"num_landmarks": 4, "segment_means_seq_len": 16},
    ),
    ("SqueezeBertForSequenceClassification", sentence, SMALL | {"embedding_size": 64}),
    (
        "MobileBertForMaskedLM",
        masked,
        SMALL | {"embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32},
    ),
    ("ConvBertForSequenceClassification", sentence, SMALL | {"embedding_size": 64}),
    ("LayoutLMForTokenClassification", boxes, BOXES),
    (
        "LayoutLMv3ForTokenClassification",
        page,
        BOXES | {"coordinate_size": 11, "shape_size": 10, "input_size": PICTURE, "patch_size": 8},
    ),
    (
        "CanineForSequenceClassification",
        letters,
        SMALL | {"num_hash_buckets": 128, "local_transformer_stride": 16},
    ),
    (
        "XLNetLMHeadModel",
        masked,
        WORDS | {"d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128},
    ),
    ("EsmForMaskedLM", masked, SMALL | {"position_embedding_type": "rotary", "mask_token_id": 3}),
    ("RoFormerForMaskedLM", masked, SMALL),
    (
        "ReformerModelWithLMHead",
        masked,
        WORDS
        | {
            "attention_head_size": 16,
            "attn_layers": ["local", "lsh"],
            "axial_pos_shape": [4, 4],
            "axial_pos_embds_dim": [32, 32],
            "hidden_size": 64,
            "num_attention_heads": 4,
            "feed_forward_size": 128,
            "local_attn_chunk_length": 4,
            "lsh_attn_chunk_length": 4,
            "num_buckets": 4,
            "max_position_embeddings": 16,
            "is_decoder": True,
        },
    ),
    (
        "PerceiverForMaskedLM",
        masked,
        {"vocab_size": 128, "d_model": 64, "d_latents": 64, "num_latents": 8}
        | {"num_self_attends_per_block": 2, "max_position_embeddings": LENGTH},
    ),
]

SEQUENCES: list[tuple[str, dict[str, Any]]] = [
    ("T5ForConditionalGeneration", T5),
    ("MT5ForConditionalGeneration", T5),
    ("LongT5ForConditionalGeneration", T5 | {"local_radius": 4}),
    ("SwitchTransformersForConditionalGeneration", T5 | {"num_experts": 4, "expert_capacity": 16}),
    ("BartForConditionalGeneration", BART),
    ("MBartForConditionalGeneration", BART),
    ("PegasusForConditionalGeneration", BART),
    ("MarianMTModel", BART),
    ("BlenderbotForConditionalGeneration", BART),
    ("M2M100ForConditionalGeneration", BART),
    (
        "LEDForConditionalGeneration",
        BART
        | {"attention_window": 8}
        | {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64},
    ),
    ("BigBirdPegasusForConditionalGeneration", BART | {"block_size": 2, "num_random_blocks": 1}),
    (
        "ProphetNetForConditionalGeneration",
        WORDS
        | {"hidden_size": 64, "num_encoder_layers": 2, "num_decoder_layers": 2}
        | {"num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4}
        | {"encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_position_embeddings": 64},
    ),
    ("T5GemmaForConditionalGeneration", {"encoder": HEADS, "decoder": HEADS} | WORDS),
    ("NllbMoeForConditionalGeneration", BART | {"num_experts": 4, "expert_capacity": 16}),
]


def bert2bert(training: bool) -> Built:
    """Two BERTs, the second of which reads the first."""
    from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

    both = EncoderDecoderConfig.from_encoder_decoder_configs(
        BertConfig(**SMALL), BertConfig(**SMALL, is_decoder=True, add_cross_attention=True)
    )
    both.decoder_start_token_id, both.pad_token_id = 1, 0
    inputs = translated(both.encoder, training)
    return EncoderDecoderModel(config=both).train(training), inputs, returned


def configurations() -> list[Configuration]:
    """All of this module."""
    return [
        *(transformers_model("encoder", *entry) for entry in ENCODERS),
        *(
            transformers_model("encoder-decoder", model, translated, settings)
            for model, settings in SEQUENCES
        ),
        Configuration("EncoderDecoderModel", "transformers", "encoder-decoder", bert2bert),
    ]
