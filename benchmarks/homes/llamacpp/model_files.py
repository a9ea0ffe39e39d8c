"""GGUF models written by the `gguf` package: small ones with random weights, one for each kind of
graph, and full-size ones whose weights are a hole in the file.

Small matrices are in Q8_0, so that 32 numbers a row suffice; vectors are 32-bit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from situate.language.architectures import named_architecture
from situate.language.hyperparameters import Hyperparameters
from situate.language.model import gguf_shapes
from situate.language.quantization import quantized_types

VOCABULARY = 8192
SEED = 1
ALIGNMENT = 32

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

FULL_SIZE: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "Llama 3.3 70B": ("llama", "Q4_K_M", {
        "block_count": 80, "embedding_length": 8192, "feed_forward_length": 28672,
        "attention.head_count": 64, "attention.head_count_kv": 8, "rope.dimension_count": 128,
        "vocab_size": 128256,
    }),
    "Qwen3 30B-A3B": ("qwen3moe", "Q4_K_M", {
        "block_count": 48, "embedding_length": 2048, "feed_forward_length": 6144,
        "attention.head_count": 32, "attention.head_count_kv": 4,
        "attention.key_length": 128, "attention.value_length": 128,
        "expert_count": 128, "expert_used_count": 8, "expert_feed_forward_length": 768,
        "vocab_size": 151936,
    }),
    "DeepSeek R1": ("deepseek2", "Q4_K_M", {
        "block_count": 61, "embedding_length": 7168, "feed_forward_length": 18432,
        "attention.head_count": 128, "attention.head_count_kv": 1,
        "attention.q_lora_rank": 1536, "attention.kv_lora_rank": 512,
        "rope.dimension_count": 64, "attention.key_length": 576,
        "attention.value_length": 512, "attention.key_length_mla": 192,
        "attention.value_length_mla": 128, "expert_count": 256, "expert_used_count": 8,
        "expert_feed_forward_length": 2048, "expert_shared_count": 1,
        "leading_dense_block_count": 3, "expert_weights_scale": 2.5,
        "expert_weights_norm": True, "expert_gating_func": 2, "nextn_predict_layers": 0,
        "vocab_size": 129280,
    }),
    "Gemma 3 27B": ("gemma3", "Q4_K_M", {
        "block_count": 62, "embedding_length": 5376, "feed_forward_length": 21504,
        "attention.head_count": 32, "attention.head_count_kv": 16,
        "attention.key_length": 128, "attention.value_length": 128,
        "attention.sliding_window": 1024, "vocab_size": 262144,
    }),
    "gpt-oss 120B": ("gpt-oss", "MXFP4_MOE", {
        "block_count": 36, "embedding_length": 2880, "feed_forward_length": 2880,
        "attention.head_count": 64, "attention.head_count_kv": 8,
        "attention.key_length": 64, "attention.value_length": 64,
        "attention.sliding_window": 128, "expert_count": 128, "expert_used_count": 4,
        "expert_feed_forward_length": 2880, "vocab_size": 201088,
    }),
    "GLM-4.5-Air": ("glm4moe", "Q4_K_M", {
        "block_count": 47, "embedding_length": 4096, "feed_forward_length": 10944,
        "attention.head_count": 96, "attention.head_count_kv": 8, "rope.dimension_count": 64,
        "attention.key_length": 128, "attention.value_length": 128,
        "expert_count": 128, "expert_used_count": 8, "expert_feed_forward_length": 1408,
        "expert_shared_count": 1, "leading_dense_block_count": 1, "expert_gating_func": 2,
        "expert_weights_scale": 1.0, "expert_weights_norm": True, "nextn_predict_layers": 1,
        "vocab_size": 151552,
    }),
}  # fmt: skip
"""Architecture, file type and metadata by the name of a model."""


def random_model(name: str, folder: Path) -> Path:
    """The file of a small model, written if it is missing."""
    path = folder / f"random-{name}.gguf"
    if not path.is_file():
        _write(path, name, MODELS[name], None)
    return path


def full_size_model(name: str, folder: Path) -> Path:
    """The file of a model whose weights are a hole, written if it is missing."""
    path = folder / f"{name.replace(' ', '-')}.gguf"
    if not path.is_file():
        architecture, file_type, values = FULL_SIZE[name]
        _write(path, architecture, values, file_type)
    return path


def _write(path: Path, name: str, own: Mapping[str, Any], file_type: str | None) -> None:
    """Write a model of an architecture, with random weights or with a hole for those of a type."""
    import gguf

    path.parent.mkdir(parents=True, exist_ok=True)
    values = {**COMMON, **own}
    architecture = named_architecture(name)
    sizes = architecture.sizes({f"{name}.{key}": value for key, value in values.items()})
    shapes = gguf_shapes(architecture, sizes, architecture.tied)
    part = path.with_suffix(".part")
    writer = gguf.GGUFWriter(part, name)
    writer.add_name("random weights")
    for key, value in values.items():
        _add(writer, f"{name}.{key}", value)
    _add_vocabulary(writer, values["vocab_size"])
    if file_type is None:
        _add_random(writer, shapes)
        end = 0
    else:
        end = _add_hole(writer, sizes, shapes, file_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file() if file_type is None else writer.write_ti_data_to_file()
    writer.close()
    if end:
        start = -(-part.stat().st_size // ALIGNMENT) * ALIGNMENT
        os.truncate(part, start + end)
    part.replace(path)


def _add_random(writer: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
    import gguf

    rng = np.random.default_rng(SEED)
    kind = gguf.GGMLQuantizationType.Q8_0
    for tensor, shape in shapes.items():
        data = rng.normal(0, 0.02, shape[::-1]).astype(np.float32)
        matrix = len(shape) > 1 and "ffn_gate_inp" not in tensor and not tensor.endswith("bias")
        if matrix:
            writer.add_tensor(tensor, gguf.quants.quantize(data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(tensor, data)


def _add_hole(
    writer: Any, sizes: Hyperparameters, shapes: Mapping[str, tuple[int, ...]], file_type: str
) -> int:
    """Add tensors without contents; returns their bytes."""
    import gguf

    end = 0
    for tensor, kind in quantized_types(sizes, shapes, file_type).items():
        size = kind.tensor_bytes(shapes[tensor])
        number = gguf.GGMLQuantizationType(kind.number)
        writer.add_tensor_info(tensor, shapes[tensor][::-1], np.dtype(np.float32), size, number)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return end


def _add(writer: Any, key: str, value: bool | int | float) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    else:
        writer.add_float32(key, value)


def _add_vocabulary(writer: Any, count: int) -> None:
    """Words of single bytes, and others that no text needs."""
    special, byte, normal = 3, 6, 1
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    kinds = [2, special, special] + [byte] * 256
    words += [f"word{i}" for i in range(count - len(words))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * count)
    writer.add_token_types(kinds + [normal] * (count - len(kinds)))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
