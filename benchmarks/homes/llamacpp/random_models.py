"""Small GGUF models with random weights, one for each kind of graph, written by the `gguf` package.

Matrices are in Q8_0, so that 32 numbers a row suffice; vectors are 32-bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from situate.language.architectures import named_architecture
from situate.language.model import gguf_shapes

VOCABULARY = 8192
SEED = 1

COMMON: Mapping[str, Any] = {
    "context_length": 32768,
    "vocab_size": VOCABULARY,
    "attention.layer_norm_rms_epsilon": 1e-6,
}

MODELS: Mapping[str, Mapping[str, Any]] = {
    "llama": {
        "block_count": 8, "embedding_length": 1024, "feed_forward_length": 2816,
        "attention.head_count": 16, "attention.head_count_kv": 4, "rope.dimension_count": 64,
    },
    "qwen2": {
        "block_count": 6, "embedding_length": 768, "feed_forward_length": 2048,
        "attention.head_count": 12, "attention.head_count_kv": 2,
    },
    "qwen3": {
        "block_count": 6, "embedding_length": 768, "feed_forward_length": 2048,
        "attention.head_count": 12, "attention.head_count_kv": 4,
        "attention.key_length": 128, "attention.value_length": 128,
    },
    "qwen3moe": {
        "block_count": 8, "embedding_length": 768, "feed_forward_length": 2048,
        "attention.head_count": 12, "attention.head_count_kv": 4,
        "attention.key_length": 64, "attention.value_length": 64,
        "expert_count": 32, "expert_used_count": 4, "expert_feed_forward_length": 256,
    },
    "qwen2moe": {
        "block_count": 6, "embedding_length": 768, "feed_forward_length": 2048,
        "attention.head_count": 12, "attention.head_count_kv": 4,
        "expert_count": 16, "expert_used_count": 4, "expert_feed_forward_length": 256,
        "expert_shared_feed_forward_length": 1024,
    },
    "deepseek2": {
        "block_count": 6, "embedding_length": 1024, "feed_forward_length": 2048,
        "attention.head_count": 16, "attention.head_count_kv": 1,
        "attention.q_lora_rank": 384, "attention.kv_lora_rank": 256,
        "rope.dimension_count": 32, "attention.key_length": 288,
        "attention.value_length": 256, "attention.key_length_mla": 96,
        "attention.value_length_mla": 64, "expert_count": 16, "expert_used_count": 4,
        "expert_feed_forward_length": 384, "expert_shared_count": 1,
        "leading_dense_block_count": 1, "expert_weights_scale": 1.0,
        "expert_gating_func": 1, "nextn_predict_layers": 0,
    },
    "gpt-oss": {
        "block_count": 8, "embedding_length": 768, "feed_forward_length": 768,
        "attention.head_count": 12, "attention.head_count_kv": 4,
        "attention.key_length": 64, "attention.value_length": 64,
        "attention.sliding_window": 128, "expert_count": 16, "expert_used_count": 4,
        "expert_feed_forward_length": 384,
    },
    "gemma2": {
        "block_count": 6, "embedding_length": 768, "feed_forward_length": 2048,
        "attention.head_count": 8, "attention.head_count_kv": 4,
        "attention.key_length": 128, "attention.value_length": 128,
        "attention.sliding_window": 1024, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    "phi3": {
        "block_count": 6, "embedding_length": 768, "feed_forward_length": 2048,
        "attention.head_count": 12, "attention.head_count_kv": 4, "rope.dimension_count": 64,
    },
    "glm4": {
        "block_count": 6, "embedding_length": 1024, "feed_forward_length": 2816,
        "attention.head_count": 16, "attention.head_count_kv": 2, "rope.dimension_count": 32,
    },
    "glm4moe": {
        "block_count": 7, "embedding_length": 768, "feed_forward_length": 2048,
        "attention.head_count": 12, "attention.head_count_kv": 4, "rope.dimension_count": 32,
        "attention.key_length": 64, "attention.value_length": 64,
        "expert_count": 16, "expert_used_count": 4, "expert_feed_forward_length": 256,
        "expert_shared_count": 1, "leading_dense_block_count": 1, "expert_gating_func": 2,
        "expert_weights_scale": 1.0, "expert_weights_norm": True, "nextn_predict_layers": 1,
    },
    "command-r": {
        "block_count": 6, "embedding_length": 1024, "feed_forward_length": 2816,
        "attention.head_count": 16, "attention.head_count_kv": 4, "logit_scale": 0.0625,
        "attention.layer_norm_epsilon": 1e-5,
    },
    "cohere2": {
        "block_count": 8, "embedding_length": 1024, "feed_forward_length": 2816,
        "attention.head_count": 16, "attention.head_count_kv": 4, "logit_scale": 0.0625,
        "attention.layer_norm_epsilon": 1e-5, "attention.sliding_window": 512,
        "rope.dimension_count": 64,
    },
    "starcoder2": {
        "block_count": 6, "embedding_length": 768, "feed_forward_length": 3072,
        "attention.head_count": 12, "attention.head_count_kv": 2,
        "attention.layer_norm_epsilon": 1e-5,
    },
}  # fmt: skip
"""Metadata by architecture, in GGUF's own keys."""


def random_model(name: str, folder: Path) -> Path:
    """The file of a model, written if it is missing."""
    path = folder / f"random-{name}.gguf"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _write(name, path)
    return path


def _write(name: str, path: Path) -> None:
    import gguf

    architecture = named_architecture(name)
    values = {**COMMON, **MODELS[name]}
    sizes = architecture.sizes({f"{name}.{key}": value for key, value in values.items()})
    part = path.with_suffix(".part")
    writer = gguf.GGUFWriter(part, name)
    writer.add_name("random weights")
    for key, value in values.items():
        _add(writer, f"{name}.{key}", value)
    _add_vocabulary(writer)
    rng = np.random.default_rng(SEED)
    kind = gguf.GGMLQuantizationType.Q8_0
    for tensor, shape in gguf_shapes(architecture, sizes, architecture.tied).items():
        data = rng.normal(0, 0.02, shape[::-1]).astype(np.float32)
        matrix = len(shape) > 1 and "ffn_gate_inp" not in tensor and not tensor.endswith("bias")
        if matrix:
            writer.add_tensor(tensor, gguf.quants.quantize(data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(tensor, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(path)


def _add(writer: Any, key: str, value: bool | int | float) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    else:
        writer.add_float32(key, value)


def _add_vocabulary(writer: Any) -> None:
    """Words of single bytes, and others that no text needs."""
    special, byte, normal = 3, 6, 1
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    kinds = [2, special, special] + [byte] * 256
    words += [f"word{i}" for i in range(VOCABULARY - len(words))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types(kinds + [normal] * (VOCABULARY - len(kinds)))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
