"""Models of published training runs that their tables name without sizes."""

from __future__ import annotations

from typing import Any

from situate.language.config import config_of
from situate.language.training.transformer import Transformer, transformer_of_config

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
QWEN: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama3_8b": LLAMA
    | {
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
    },
    "llama3_70b": LLAMA
    | {
        "num_hidden_layers": 80,
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_attention_heads": 64,
    },
    "llama31_405b": LLAMA
    | {
        "num_hidden_layers": 126,
        "hidden_size": 16384,
        "intermediate_size": 53248,
        "num_attention_heads": 128,
    },
    "qwen3_30b_a3b": QWEN
    | {
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_attention_heads": 32,
    },
    "qwen3_235b_a22b": QWEN
    | {
        "num_hidden_layers": 94,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "moe_intermediate_size": 1536,
        "num_attention_heads": 64,
    },
    "gptoss120b": {
        "model_type": "gpt_oss",
        "num_hidden_layers": 36,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 201088,
        "max_position_embeddings": 131072,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "sliding_window": 128,
    },
    "deepseekv3": {
        "model_type": "deepseek_v3",
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
    },
}
"""Configurations of models by their name in lower case, as their makers publish them."""

NAMES = {
    "llama3.1-8b": "llama3_8b",
    "llama3.1-70b": "llama3_70b",
    "llama3.1-405b": "llama31_405b",
    "llama31_405b": "llama31_405b",
    "llama3.1_405b": "llama31_405b",
    "gpt oss 120b": "gptoss120b",
}
"""Names of tables that differ from those of `CONFIGS`."""


def named_model(name: str) -> Transformer | None:
    """The model of a name in a table; None if it is not known."""
    key = name.lower().split(" (")[0]
    config = CONFIGS.get(NAMES.get(key, key))
    return None if config is None else transformer_of_config(config_of(config), key)
