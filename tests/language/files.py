"""GGUF and safetensors files for tests, written byte by byte, and tables of real models."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from situate.language.tensor_types import TYPES

TABLES = Path(__file__).parent / "tables"
Tensor = tuple[str, Sequence[int], str]

LLAMA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "tiny",
    "llama.block_count": 2,
    "llama.context_length": 4096,
    "llama.embedding_length": 256,
    "llama.feed_forward_length": 512,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": [f"token {i}" for i in range(100)],
}


def llama_tensors(kind: str = "Q4_K") -> list[Tensor]:
    """The tensors of a small Llama with two layers and a tied embedding."""
    tensors: list[Tensor] = [("token_embd.weight", (256, 100), kind)]
    for i in range(2):
        tensors += [
            (f"blk.{i}.attn_norm.weight", (256,), "F32"),
            (f"blk.{i}.attn_q.weight", (256, 256), kind),
            (f"blk.{i}.attn_k.weight", (256, 128), kind),
            (f"blk.{i}.attn_v.weight", (256, 128), kind),
            (f"blk.{i}.attn_output.weight", (256, 256), kind),
            (f"blk.{i}.ffn_norm.weight", (256,), "F32"),
            (f"blk.{i}.ffn_gate.weight", (256, 512), kind),
            (f"blk.{i}.ffn_up.weight", (256, 512), kind),
            (f"blk.{i}.ffn_down.weight", (512, 256), kind),
        ]
    return [*tensors, ("output_norm.weight", (256,), "F32")]


def text_bytes(text: str | bytes) -> bytes:
    """A string of GGUF."""
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value_bytes(value: Any) -> bytes:
    """A value of GGUF's metadata with its type."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text_bytes(value)
    if value and isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text_bytes, value))
    kind, format = (7, "?") if value and isinstance(value[0], bool) else (5, "i")
    return struct.pack(f"<IIQ{len(value)}{format}", 9, kind, len(value), *value)


def tensor_bytes(name: str | bytes, shape: Sequence[int], number: int, offset: int) -> bytes:
    """A row of GGUF's table of tensors."""
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text_bytes(name) + dims + struct.pack("<IQ", number, offset)


def gguf_header(
    metadata: Mapping[str, Any], tensors: Sequence[Tensor], version: int = 3, alignment: int = 32
) -> bytes:
    """A header up to the weights, with offsets one after the other."""
    data = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        data += text_bytes(key) + value_bytes(value)
    offset = 0
    for name, shape, kind in tensors:
        data += tensor_bytes(name, shape, TYPES[kind].number, offset)
        offset += -(-TYPES[kind].tensor_bytes(shape) // alignment) * alignment
    return data + bytes(-len(data) % alignment)


def table(name: str) -> dict[str, Any]:
    """A table of a real model's tensors, one entry for equal tensors of all layers."""
    content: dict[str, Any] = json.loads((TABLES / f"{name}.json").read_text())
    return content


def table_rows(content: Mapping[str, Any]) -> list[tuple[str, list[int], Any]]:
    """The name, the shape and the entry of each tensor of a table."""
    rows = []
    for name, shape, first, runs in content["tensors"]:
        entries = [entry for entry, count in runs for _ in range(count)]
        for i, entry in enumerate(entries):
            full = name if first is None else name.replace("*", str(first + i))
            rows.append((full, shape, entry))
    return rows


def table_metadata(content: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a table, with arrays as long as the real ones that it stands for."""
    metadata = {}
    for key, value in content["metadata"].items():
        is_array = isinstance(value, str) and value.startswith("[") and " x t" in value
        metadata[key] = [0] * int(value[1:].split()[0]) if is_array else value
    return metadata


def safetensors_bytes(
    tensors: Mapping[str, tuple[str, Sequence[int]]], weights: bool = False
) -> bytes:
    """A safetensors file by type and shape of its tensors, without weights by default."""
    entries, offset = {}, 0
    for name, (kind, shape) in tensors.items():
        size = prod(shape) * TYPES[kind].size
        entries[name] = {
            "dtype": kind,
            "shape": list(shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    header = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    return struct.pack("<Q", len(header)) + header + (bytes(offset) if weights else b"")


LLAMA_CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}


def llama_safetensors() -> dict[str, tuple[str, Sequence[int]]]:
    """The tensors of the small Llama as safetensors files have them."""
    tensors: dict[str, tuple[str, Sequence[int]]] = {
        "model.embed_tokens.weight": ("BF16", (100, 256)),
        "model.norm.weight": ("BF16", (256,)),
    }
    for i in range(2):
        layer = f"model.layers.{i}"
        tensors |= {
            f"{layer}.input_layernorm.weight": ("BF16", (256,)),
            f"{layer}.post_attention_layernorm.weight": ("BF16", (256,)),
            f"{layer}.self_attn.q_proj.weight": ("BF16", (256, 256)),
            f"{layer}.self_attn.k_proj.weight": ("BF16", (128, 256)),
            f"{layer}.self_attn.v_proj.weight": ("BF16", (128, 256)),
            f"{layer}.self_attn.o_proj.weight": ("BF16", (256, 256)),
            f"{layer}.mlp.gate_proj.weight": ("BF16", (512, 256)),
            f"{layer}.mlp.up_proj.weight": ("BF16", (512, 256)),
            f"{layer}.mlp.down_proj.weight": ("BF16", (256, 512)),
        }
    return tensors
