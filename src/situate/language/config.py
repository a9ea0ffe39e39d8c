"""The `config.json` of a model on Hugging Face, translated to the metadata of a GGUF file.

The translation is that of llama.cpp's converter (`conversion/`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from situate.errors import ReadError
from situate.files import strict_json
from situate.files.contents import contents
from situate.language.architectures import Architecture, Translation, configured_architecture
from situate.language.gguf import Value
from situate.language.hyperparameters import Hyperparameters

CONFIG = "config.json"
MAX_CONFIG = 2**24
"""Bytes at most."""

NESTED = ("text_config", "llm_config", "language_config")
"""Keys under which configurations of models with pictures have that of their language model."""

UNUSED_TOKENS = {262208: 262144}
"""Vocabularies of Gemma 3 with placeholders for pictures, which GGUF files leave out."""

COMMON: Translation = {
    "num_hidden_layers": "block_count",
    "n_layer": "block_count",
    "num_layers": "block_count",
    "max_position_embeddings": "context_length",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "vocab_size": "vocab_size",
    "num_local_experts": "expert_count",
    "num_experts": "expert_count",
    "n_routed_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
    "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
    "n_shared_experts": "expert_shared_count",
    "first_k_dense_replace": "leading_dense_block_count",
    "num_nextn_predict_layers": "nextn_predict_layers",
    "sliding_window": "attention.sliding_window",
    "sliding_window_pattern": "attention.sliding_window_pattern",
    "full_attention_interval": "full_attention_interval",
    "q_lora_rank": "attention.q_lora_rank",
    "kv_lora_rank": "attention.kv_lora_rank",
    "qk_rope_head_dim": "rope.dimension_count",
    "v_head_dim": "attention.value_length_mla",
}


@dataclass(frozen=True)
class Config:
    """A `config.json`.

    Attributes:
        architecture: by its `model_type`.
        sizes: of the language model.
        tied: the output uses the matrix of the embedding.
        constants: vectors that the converter to GGUF adds, by name.
        packed: the method by which the weights are stored in fewer bits, if any.
    """

    architecture: Architecture
    sizes: Hyperparameters
    tied: bool
    constants: Mapping[str, tuple[int, ...]]
    packed: str | None


def is_config(path: Path) -> bool:
    """True if a file looks like the `config.json` of a model."""
    try:
        if path.suffix != ".json" or path.stat().st_size > MAX_CONFIG:
            return False
        keys = strict_json.top_level(contents(path, MAX_CONFIG))
    except (ReadError, OSError):
        return False
    return "model_type" in keys or ("architectures" in keys and "graph" not in keys)


def model_name(path: Path) -> str:
    """The name of the model: the folder's, or the file's if it is not called `config.json`."""
    folder = path.absolute().parent.name
    return folder if path.name == CONFIG and folder else path.stem


def read_config(path: Path) -> Config:
    """The configuration in a file.

    Raises:
        ReadError: it cannot be read, is of an unknown architecture, or has absurd sizes.
    """
    return config_of(read_values(path))


def read_values(path: Path) -> dict[str, Any]:
    """The values in a file.

    Raises:
        ReadError: it cannot be read.
    """
    return strict_json.decode(contents(path, MAX_CONFIG), dict[str, Any], unique=False)


def config_of(values: dict[str, Any]) -> Config:
    """The configuration with these values.

    Raises:
        ReadError: the architecture is unknown, or a size is missing or absurd.
    """
    for key in NESTED:
        if isinstance(values.get(key), dict):
            values = {**values, **values[key]}
    model_type = values.get("model_type")
    if not isinstance(model_type, str):
        raise ReadError("has no model_type: it is no configuration of a language model")
    architecture = configured_architecture(model_type)
    sizes = architecture.sizes(_metadata(values, architecture))
    if not sizes.vocabulary:
        raise ReadError("has no vocab_size")
    tied = values.get("tie_word_embeddings", architecture.tied)
    return Config(architecture, sizes, bool(tied), _constants(values, sizes), _packed(values))


def _metadata(config: Mapping[str, object], architecture: Architecture) -> dict[str, Value]:
    """The metadata that a GGUF file of the model would have."""
    names = {**COMMON, **architecture.renamed}
    config = {**architecture.defaults, **config}
    metadata: dict[str, Value] = {}
    for name, key in names.items():
        value = config.get(name)
        if isinstance(value, list):
            value = tuple(value)
        if isinstance(value, (int, float, tuple)) and not isinstance(value, bool):
            metadata.setdefault(f"{architecture.name}.{key}", value)
    derived = _derived(config, architecture.name)
    return metadata | {f"{architecture.name}.{key}": value for key, value in derived.items()}


def _derived(config: Mapping[str, object], name: str) -> dict[str, Value]:
    """Values that llama.cpp's converter computes of others."""

    def number(key: str, default: int = 0) -> int:
        value = config.get(key, default)
        if isinstance(value, int) and 0 <= value < 2**31:
            return value
        raise ReadError(f"{key}: must be a whole number below 2^31, got {str(value)[:60]}")

    values: dict[str, Value] = {}
    if "head_dim" in config and config["head_dim"] is not None:
        values["attention.value_length"] = number("head_dim")
    if name == "deepseek2":
        # Multi-head latent attention caches one vector and its rotary part for all heads;
        # `_mla` is the width of a head after decompression.
        rope = number("qk_rope_head_dim")
        values |= {"attention.head_count_kv": 1, "nextn_predict_layers": 0}
        values["attention.key_length"] = number("kv_lora_rank") + rope
        values["attention.value_length"] = number("kv_lora_rank")
        values["attention.key_length_mla"] = number("qk_nope_head_dim") + rope
    if name in ("qwen3next", "qwen35", "qwen35moe"):
        values["ssm.inner_size"] = number("linear_value_head_dim") * number(
            "linear_num_value_heads"
        )
    if name == "mamba2":
        inner = number("intermediate_size") or number("expand", 2) * number("hidden_size")
        # A state limits no context; the converter writes this number.
        values |= {"ssm.inner_size": inner, "context_length": 2**20, "feed_forward_length": 0}
        values["ssm.time_step_rank"] = inner // max(number("head_dim"), 1)
        multiple = max(number("pad_vocab_size_multiple", 16), 1)
        values["vocab_size"] = -(-number("vocab_size") // multiple) * multiple
    if draft := number("num_nextn_predict_layers") if name != "deepseek2" else 0:
        values["block_count"] = number("num_hidden_layers") + draft
    if name == "gpt-oss" and "intermediate_size" in config:
        values["expert_feed_forward_length"] = number("intermediate_size")
    if name == "gemma3":
        vocabulary = number("vocab_size")
        values["vocab_size"] = UNUSED_TOKENS.get(vocabulary, vocabulary)
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and kinds:
        values["attention.sliding_window_pattern"] = tuple(k == "sliding_attention" for k in kinds)
        if "linear_attention" in kinds:
            values["attention.recurrent_layers"] = tuple(k == "linear_attention" for k in kinds)
    return values


def _constants(config: Mapping[str, object], sizes: Hyperparameters) -> dict[str, tuple[int, ...]]:
    """Factors of rotary positions that the converter to GGUF writes as tensors."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if not isinstance(scaling, dict):
        return {}
    shape = (max(sizes.rotary // 2, 1),)
    if scaling.get("rope_type", scaling.get("type")) == "llama3":
        return {"rope_freqs.weight": shape}
    if scaling.get("long_factor"):
        return {"rope_factors_long.weight": shape, "rope_factors_short.weight": shape}
    return {}


def _packed(config: Mapping[str, object]) -> str | None:
    method = config.get("quantization_config")
    if not isinstance(method, dict):
        return None
    return str(method.get("quant_method", "an unknown method"))[:40]
