"""The models of published measurements: sizes by the name of a model, types by its file.

A file is identified by the counts of its tensor types, which llama.cpp prints when it loads one.
Sizes are those of the models' `config.json` files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from situate.language.config import config_of
from situate.language.hyperparameters import Hyperparameters
from situate.language.model import LanguageModel, assemble, gguf_shapes, typed_weights
from situate.language.quantization import FILE_TYPES, quantized_types
from situate.language.tensor_types import TensorType, named_type

DEEPSEEK = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_attention_heads": 128,
    "vocab_size": 129280,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
}
QWEN3_MOE = {
    "model_type": "qwen3_moe",
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 151936,
    "num_experts": 128,
    "num_experts_per_tok": 8,
}
QWEN3_235B = QWEN3_MOE | {
    "num_hidden_layers": 94,
    "hidden_size": 4096,
    "num_attention_heads": 64,
    "moe_intermediate_size": 1536,
}
QWEN3_30B = QWEN3_MOE | {
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "moe_intermediate_size": 768,
}
GLM4_32B = {
    "model_type": "glm4",
    "num_hidden_layers": 61,
    "hidden_size": 6144,
    "intermediate_size": 23040,
    "num_attention_heads": 48,
    "head_dim": 128,
    "vocab_size": 151552,
}
CONFIGS: tuple[tuple[str, dict[str, Any]], ...] = (
    (r"Coder.V2.Lite", {
        **DEEPSEEK, "model_type": "deepseek_v2", "num_hidden_layers": 27, "hidden_size": 2048,
        "intermediate_size": 10944, "num_attention_heads": 16, "vocab_size": 102400,
        "q_lora_rank": None, "n_routed_experts": 64, "num_experts_per_tok": 6,
        "n_shared_experts": 2, "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
    }),
    (r"Kimi.K2", {
        **DEEPSEEK, "num_attention_heads": 64, "vocab_size": 163840, "n_routed_experts": 384,
        "first_k_dense_replace": 1,
    }),
    (r"DeepSeek.(R1|V3)", DEEPSEEK),
    (r"Qwen3.235B", QWEN3_235B),
    (r"Models", QWEN3_235B),
    (r"Qwen3.30B", QWEN3_30B),
    (r"Qwen3.32B", {
        "model_type": "qwen3", "num_hidden_layers": 64, "hidden_size": 5120,
        "intermediate_size": 25600, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 151936,
    }),
    (r"GLM.4\.5.Air", {
        "model_type": "glm4_moe", "num_hidden_layers": 46, "hidden_size": 4096,
        "intermediate_size": 10944, "num_attention_heads": 96, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 151552, "n_routed_experts": 128, "num_experts_per_tok": 8,
        "n_shared_experts": 1, "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
        "use_qk_norm": False, "num_nextn_predict_layers": 1,
    }),
    (r"Qwen3\.[568].27B", {
        "model_type": "qwen3_5", "num_hidden_layers": 64, "hidden_size": 5120,
        "intermediate_size": 17408, "num_attention_heads": 24, "num_key_value_heads": 4,
        "head_dim": 256, "vocab_size": 248320, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 48,
        "linear_value_head_dim": 128, "full_attention_interval": 4,
    }),
    (r"Qwen3\.[568].35B", {
        "model_type": "qwen3_5_moe", "num_hidden_layers": 40, "hidden_size": 2048,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
        "vocab_size": 248320, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
        "full_attention_interval": 4, "num_experts": 256, "num_experts_per_tok": 8,
        "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
    }),
    (r"Llama.2.7B", {
        "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
        "intermediate_size": 11008, "num_attention_heads": 32, "vocab_size": 32000,
    }),
    (r"GLM Z1 Rumination", GLM4_32B | {"num_key_value_heads": 8}),
    (r"GLM Z1 32B", GLM4_32B | {"num_key_value_heads": 2}),
    (r"Llama.3\.1.8[Bb]", {
        "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
        "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128256, "rope_scaling": {"rope_type": "llama3"},
    }),
    (r"LLaMA v2", {
        "model_type": "llama", "num_hidden_layers": 40, "hidden_size": 5120,
        "intermediate_size": 13824, "num_attention_heads": 40, "vocab_size": 32000,
    }),
    (r"Gemma 3 27b", {
        "model_type": "gemma3", "num_hidden_layers": 62, "hidden_size": 5376,
        "intermediate_size": 21504, "num_attention_heads": 32, "num_key_value_heads": 16,
        "head_dim": 128, "vocab_size": 262208, "sliding_window": 1024,
    }),
    (r"bitnet", {
        "model_type": "bitnet", "num_hidden_layers": 30, "hidden_size": 2560,
        "intermediate_size": 6912, "num_attention_heads": 20, "num_key_value_heads": 5,
        "vocab_size": 128256,
    }),
)  # fmt: skip
"""`config.json` by a pattern in the name of a model; the first that occurs counts."""

Recipe = tuple[tuple[str, str], ...]
"""Types by a pattern in the name of a tensor; the first that occurs counts."""

GATE_UP, DOWN = r"ffn_(gate|up)_exps", r"ffn_down_exps"
RECIPES: Mapping[str, tuple[Recipe, ...]] = {
    "f32:361 q8_0_r8:612 iq4_k_r4:116 iq5_k_r4:58": (
        ((GATE_UP, "IQ4_K_R4"), (DOWN, "IQ5_K_R4"), ("", "Q8_0_R8")),
    ),
    "f32:361 q8_0:612 iq4_k_r4:116 iq5_k_r4:58": (
        ((GATE_UP, "IQ4_K_R4"), (DOWN, "IQ5_K_R4"), ("", "Q8_0")),
    ),
    "f32:361 q8_0:612 iq3_k_r4:116 iq4_ks_r4:58": (
        ((GATE_UP, "IQ3_K_R4"), (DOWN, "IQ4_KS_R4"), ("", "Q8_0")),
    ),
    "f32:361 q8_0:612 iq4_ks_r4:116 iq5_ks_r4:58": (
        ((GATE_UP, "IQ4_KS_R4"), (DOWN, "IQ5_KS_R4"), ("", "Q8_0")),
    ),
    "f32:361 iq6_k:1 q6_0_r4:61 iq3_k_r4:82 iq4_k_r4:75 iq5_k_r4:567": (
        (
            ("token_embd", "IQ6_K"),
            ("attn_k_b", "Q6_0_R4"),
            (r"\.([3-9]|1\d)\.ffn_down_exps", "IQ5_K_R4"),
            (r"ffn_down_exps|\.([3-9]|1\d)\.ffn_(gate|up)_exps", "IQ4_K_R4"),
            (GATE_UP, "IQ3_K_R4"),
            ("", "IQ5_K_R4"),
        ),
    ),
    "f32:361 q5_0:61 iq4_ks:116 iq5_ks:435 iq2_k_r4:116 iq3_k_r4:58": (
        (
            ("attn_k_b", "Q5_0"),
            (GATE_UP, "IQ2_K_R4"),
            (DOWN, "IQ3_K_R4"),
            (r"ffn_(gate|up)_shexp", "IQ4_KS"),
            ("", "IQ5_KS"),
        ),
    ),
    "f32:361 q4_0:61 iq4_ks:551 iq1_s_r4:116 iq1_m_r4:58": (
        (("attn_k_b", "Q4_0"), (GATE_UP, "IQ1_S_R4"), (DOWN, "IQ1_M_R4"), ("", "IQ4_KS")),
    ),
    "f32:361 q5_0:61 q5_K:61 q6_K:1 iq4_k:1 iq4_k_r4:662": (
        (
            ("attn_k_b", "Q5_0"),
            ("attn_output", "Q5_K"),
            ("^output", "Q6_K"),
            ("token_embd", "IQ4_K"),
            ("", "IQ4_K_R4"),
        ),
    ),
    "f32:361 q8_0:490 q3_k_r4:63 q4_k_r4:60 q5_k_r4:51": (
        (
            (r"\.(\d|[1-4]\d|5[0-3])\.ffn_down_exps", "Q5_K_R4"),
            (r"ffn_down_exps|\.(\d|1\d|2[0-8])\.ffn_(gate|up)_exps|\.29\.ffn_up_exps", "Q4_K_R4"),
            (GATE_UP, "Q3_K_R4"),
            ("", "Q8_0"),
        ),
    ),
    "f32:471 q8_0:2 iq3_k:188 iq4_k:94 iq6_k:376": (
        ((GATE_UP, "IQ3_K"), (DOWN, "IQ4_K"), ("attn", "IQ6_K"), ("", "Q8_0")),
    ),
    "f32:471 q8_0:96 iq6_k:564": (((rf"token_embd|^output.weight|{DOWN}", "Q8_0"), ("", "IQ6_K")),),
    "f32:241 q8_0:6 iq4_k:96 iq5_k:48 iq6_k:188": (
        (
            (GATE_UP, "IQ4_K"),
            (DOWN, "IQ5_K"),
            (r"token_embd|^output.weight|blk\.0\.", "Q8_0"),
            ("", "IQ6_K"),
        ),
    ),
    "f32:66 q4_K:32 q5_K:161 q6_K:33": (
        (("^output.weight", "Q6_K"), ("attn_v", "Q6_K"), ("attn_q", "Q4_K"), ("", "Q5_K")),
        (("^output.weight", "Q6_K"), ("ffn_down", "Q6_K"), ("attn_q", "Q4_K"), ("", "Q5_K")),
        (("^output.weight", "Q6_K"), ("attn_v", "Q6_K"), ("attn_k", "Q4_K"), ("", "Q5_K")),
        (("^output.weight", "Q6_K"), ("attn_v", "Q6_K"), ("attn_output", "Q4_K"), ("", "Q5_K")),
    ),
    "f32:121 f16:2 i2_s:210": ((("token_embd|^output.weight", "F16"), ("", "I2_S")),),
    "f32:121 q6_K:1 iq4_nl:1 iq2_bn:210": (
        (("^output.weight", "Q6_K"), ("token_embd", "IQ4_NL"), ("", "IQ2_BN")),
    ),
}
"""Mixtures that no file type describes, by the counts of their types; of several possible ones
the first with the size of the file is taken."""

RULES: Mapping[str, tuple[str, ...]] = {
    "Q4_K - Medium": ("Q4_K_M",),
    "Q5_K - Medium": ("Q5_K_M",),
    "Q8_0": ("Q8_0",),
    "Q6_K": ("Q6_K",),
    "BF16": ("BF16",),
    "IQ4_XS": ("IQ4_XS",),
    "Q4_K_M": ("Q4_K_M",),
    "": ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "Q4_0", "IQ4_XS", "BF16"),
}
"""File types that the name of a quantisation may mean."""

ROWS_INTERLEAVED = {"Q8_0_R8": "Q8_0", "Q4_K_R4": "Q4_K", "Q6_K_R4": "Q6_K"}
"""Types of ik_llama.cpp with the bytes of a type of llama.cpp."""


@dataclass(frozen=True)
class Cell:
    """The model of a row.

    Attributes:
        model: its name.
        quant: the name of the file type, and the size of the file in GiB.
        counts: tensors by type; empty if the row has none.
    """

    model: str
    quant: str
    counts: Mapping[str, int]


def config_values(model: str) -> dict[str, Any] | None:
    """The `config.json` of a model by its name; None if the table has none."""
    return next((values for part, values in CONFIGS if re.search(part, model)), None)


def sizes_of(model: str) -> Hyperparameters | None:
    """The sizes of a model by its name; None if the table has none."""
    values = config_values(model)
    return None if values is None else config_of(values).sizes


def model_of(cell: Cell) -> LanguageModel | None:
    """The model whose tensors have the counts and the size of a row; None if no rule gives it."""
    values = config_values(cell.model)
    if values is None or not (cell.counts or cell.quant in FILE_TYPES):
        return None
    config = config_of(values)
    shapes = gguf_shapes(config.architecture, config.sizes, tied="Gemma" in cell.model)
    if config.architecture.name == "gemma3":
        shapes["token_embd.weight"] = (config.sizes.width, int(values["vocab_size"]))
    shapes |= config.constants
    variants = _decompressions(config.sizes, shapes)
    for variant in variants if cell.counts else variants[-1:]:
        for types in _candidates(cell, config.sizes, variant):
            weights = typed_weights(variant, types, config.sizes.layers)
            model = assemble(weights, config.sizes, cell.model, "config")
            counts = Counter(weight.type.name for weight in model.weights)
            if (not cell.counts or counts == _plain(cell.counts)) and _fits_label(
                model.size, cell.quant
            ):
                return model
    return None


def _plain(counts: Mapping[str, int]) -> Counter[str]:
    return Counter({name.upper(): count for name, count in counts.items()})


def _decompressions(
    sizes: Hyperparameters, shapes: Mapping[str, tuple[int, ...]]
) -> list[dict[str, tuple[int, ...]]]:
    """The tensors with the matrices of latent attention as different converters write them."""
    mla = sizes.latent
    if mla is None:
        return [dict(shapes)]
    joint = (mla.cache_rank, sizes.heads[0] * (mla.key - mla.rope + mla.value))
    both = {**shapes}
    for i in range(sizes.layers):
        both[f"blk.{i}.attn_kv_b.weight"] = joint
        both[f"blk.{i}.attn_k_b.weight"] = (mla.key - mla.rope, mla.cache_rank * sizes.heads[0])
    old = {name: s for name, s in both.items() if not re.search(r"attn_[kv]_b\.", name)}
    return [dict(shapes), both, old]


def _candidates(
    cell: Cell, sizes: Hyperparameters, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[dict[str, TensorType]]:
    """Types that the tensors may have: by recipes, then by llama-quantize's rules."""
    plain = quantized_types(sizes, shapes, "BF16")
    label = " ".join(f"{name}:{count}" for name, count in cell.counts.items())
    for recipe in RECIPES.get(label, ()):
        yield _by_recipe(recipe, plain)
    name = re.split(r"(?:^| )[\d.]+ GiB| - [\d.]+ bpw", cell.quant)[0]
    fast = {ROWS_INTERLEAVED[t.upper()]: t for t in cell.counts if t.upper() in ROWS_INTERLEAVED}
    for file_type in _file_types(re.sub(r"_R\d$", "", name)):
        for imatrix in (False, True):
            types = quantized_types(sizes, shapes, file_type, imatrix)
            for kinds in (_without_joint_rule(types, FILE_TYPES[file_type]), types):
                yield kinds
                yield {t: kind if "embd" in t else _fast(kind, fast) for t, kind in kinds.items()}


def _file_types(name: str) -> tuple[str, ...]:
    return RULES.get(name, (name,) if name in FILE_TYPES else RULES[""])


def _without_joint_rule(types: Mapping[str, TensorType], usual: str) -> dict[str, TensorType]:
    """Types as llama-quantize chose them before it treated `attn_kv_b` like values."""
    joint = named_type(usual)
    return {name: joint if "attn_kv_b" in name else kind for name, kind in types.items()}


def _fast(kind: TensorType, interleaved: Mapping[str, str]) -> TensorType:
    return named_type(interleaved.get(kind.name, kind.name))


def _by_recipe(recipe: Recipe, plain: Mapping[str, TensorType]) -> dict[str, TensorType]:
    return {
        name: kind
        if kind.name == "F32"
        else named_type(next(t for part, t in recipe if re.search(part, name)))
        for name, kind in plain.items()
    }


def _fits_label(size: int, quant: str) -> bool:
    """True if the file type's label has that size, or none."""
    match = re.search(r"([\d.]+) (GiB|MiB)", quant)
    if match is None:
        return True
    unit = 2**30 if match[2] == "GiB" else 2**20
    return abs(size / unit - float(match[1])) < 0.0015
