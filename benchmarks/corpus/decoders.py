"""Decoders of transformers: language models from left to right."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import Configuration, tokenized, transformers_model

WORDS = {"vocab_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = WORDS | {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GROUPED = SMALL | {"num_key_value_heads": 2}
HEADS = GROUPED | {"head_dim": 16}
GPT = WORDS | {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}

DECODERS = {
    "GPT2LMHeadModel": GPT,
    "GPTNeoForCausalLM": WORDS
    | {
        "hidden_size": 64,
        "num_layers": 2,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 1]],
        "max_position_embeddings": 64,
        "window_size": 8,
    },
    "GPTNeoXForCausalLM": SMALL,
    "GPTJForCausalLM": GPT | {"rotary_dim": 8},
    "GPTBigCodeForCausalLM": GPT,
    "CodeGenForCausalLM": GPT | {"rotary_dim": 8},
    "OPTForCausalLM": SMALL | {"ffn_dim": 128, "word_embed_proj_dim": 64},
    "BloomForCausalLM": WORDS | {"hidden_size": 64, "n_layer": 2, "n_head": 4},
    "MptForCausalLM": WORDS | {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 64},
    "FalconForCausalLM": SMALL | {"num_kv_heads": 2, "new_decoder_architecture": True},
    "PhiForCausalLM": GROUPED,
    "Phi3ForCausalLM": GROUPED,
    "LlamaForCausalLM": GROUPED,
    "MistralForCausalLM": GROUPED | {"sliding_window": 8},
    "Qwen2ForCausalLM": GROUPED,
    "Qwen3ForCausalLM": HEADS,
    "GemmaForCausalLM": HEADS,
    "Gemma2ForCausalLM": HEADS | {"sliding_window": 8},
    "Gemma3ForCausalLM": HEADS | {"sliding_window": 8},
    "StableLmForCausalLM": GROUPED,
    "Starcoder2ForCausalLM": GROUPED,
    "CohereForCausalLM": GROUPED,
    "Cohere2ForCausalLM": GROUPED | {"sliding_window": 8},
    "Olmo2ForCausalLM": GROUPED,
    "GraniteForCausalLM": GROUPED,
    "Glm4ForCausalLM": HEADS,
    "SmolLM3ForCausalLM": GROUPED,
    "NemotronForCausalLM": GROUPED,
    "XGLMForCausalLM": WORDS
    | {
        "d_model": 64,
        "ffn_dim": 128,
        "num_layers": 2,
        "attention_heads": 4,
        "max_position_embeddings": 64,
    },
}

EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
LATENT = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8}
DEEPSEEK = (
    GROUPED
    | LATENT
    | {
        "num_key_value_heads": 4,
        "v_head_dim": 16,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
        "n_group": 2,
        "topk_group": 1,
        "n_shared_experts": 1,
    }
)

MIXTURES = {
    "MixtralForCausalLM": GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "Qwen2MoeForCausalLM": GROUPED | EXPERTS | {"shared_expert_intermediate_size": 64},
    "Qwen3MoeForCausalLM": HEADS | EXPERTS,
    "OlmoeForCausalLM": GROUPED | {"num_experts": 4, "num_experts_per_tok": 2},
    "DeepseekV2ForCausalLM": DEEPSEEK,
    "DeepseekV3ForCausalLM": DEEPSEEK,
    "GptOssForCausalLM": HEADS
    | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},
    "Llama4ForCausalLM": HEADS
    | {"num_local_experts": 4, "intermediate_size_mlp": 128, "interleave_moe_layer_step": 1},
    "GraniteMoeForCausalLM": GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "PhimoeForCausalLM": GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "Glm4MoeForCausalLM": HEADS
    | EXPERTS
    | {"n_routed_experts": 4, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1},
    "DbrxForCausalLM": WORDS
    | {
        "d_model": 64,
        "n_heads": 4,
        "n_layers": 2,
        "max_seq_len": 64,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 1e4},
        "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 4, "moe_top_k": 2},
    },
}

STATES = {
    "MambaForCausalLM": WORDS | {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8},
    "Mamba2ForCausalLM": WORDS
    | {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "state_size": 8,
        "num_heads": 8,
        "head_dim": 16,
        "n_groups": 2,
        "chunk_size": 8,
    },
    "FalconMambaForCausalLM": WORDS | {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8},
    "JambaForCausalLM": GROUPED
    | {
        "num_hidden_layers": 4,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "num_experts": 4,
        "use_mamba_kernels": False,
        "mamba_d_state": 8,
        "mamba_dt_rank": 8,
    },
    "BambaForCausalLM": GROUPED
    | {
        "attn_layer_indices": [1],
        "mamba_n_heads": 8,
        "mamba_d_head": 16,
        "mamba_n_groups": 2,
        "mamba_d_state": 8,
        "mamba_chunk_size": 8,
    },
    "Zamba2ForCausalLM": GROUPED
    | {
        "num_hidden_layers": 3,
        "num_key_value_heads": 4,
        "layers_block_type": ["mamba", "mamba", "hybrid"],
        "num_mem_blocks": 1,
        "mamba_d_state": 8,
        "mamba_ngroups": 2,
        "mamba_headdim": 16,
        "n_mamba_heads": 8,
        "chunk_size": 8,
        "adapter_rank": 8,
    },
    "RecurrentGemmaForCausalLM": HEADS
    | {"num_hidden_layers": 3, "lru_width": 64, "attention_window_size": 8},
    "RwkvForCausalLM": WORDS
    | {"hidden_size": 64, "num_hidden_layers": 2, "context_length": 64, "intermediate_size": 128},
    "Qwen3NextForCausalLM": HEADS
    | EXPERTS
    | {
        "shared_expert_intermediate_size": 32,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "layer_types": ["linear_attention", "full_attention"],
    },
    "Lfm2ForCausalLM": GROUPED | {"layer_types": ["conv", "full_attention"]},
    "FalconH1ForCausalLM": GROUPED
    | {
        "mamba_d_ssm": 128,
        "mamba_n_heads": 8,
        "mamba_d_head": 16,
        "mamba_n_groups": 2,
        "mamba_d_state": 8,
        "mamba_chunk_size": 8,
    },
}


def causal(config: Any, training: bool) -> dict[str, torch.Tensor]:
    """Sentences that are their own labels."""
    words = tokenized(config)
    return words | {"labels": words["input_ids"]} if training else words


def configurations() -> list[Configuration]:
    """All of this module."""
    kinds = {"decoder": DECODERS, "mixture of experts": MIXTURES, "state space": STATES}
    return [
        transformers_model(kind, model, causal, settings)
        for kind, models in kinds.items()
        for model, settings in models.items()
    ]
