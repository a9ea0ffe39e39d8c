"""The tensors of a layer, by architecture.

A function takes the sizes of a model and the number of a layer. Most put parts together that
`layer_parts.py` has.
"""

from __future__ import annotations

from situate.language.hyperparameters import Hyperparameters
from situate.language.layer_parts import (
    Shapes,
    bias,
    delta_net,
    feed_forward,
    grouped_attention,
    head_norms,
    latent_attention,
    mixture,
    norms,
    state_space,
)


def llama(h: Hyperparameters, i: int) -> Shapes:
    network = feed_forward(h, i) if h.experts is None else mixture(h)
    return norms(h.width, "attn_norm", "ffn_norm") | grouped_attention(h, i) | network


def qwen2(h: Hyperparameters, i: int) -> Shapes:
    attention = bias(grouped_attention(h, i), "attn_q", "attn_k", "attn_v")
    return norms(h.width, "attn_norm", "ffn_norm") | attention | feed_forward(h, i)


def qwen2moe(h: Hyperparameters, i: int) -> Shapes:
    attention = bias(grouped_attention(h, i), "attn_q", "attn_k", "attn_v")
    return norms(h.width, "attn_norm", "ffn_norm") | attention | mixture(h, shared_gate=True)


def qwen3(h: Hyperparameters, i: int) -> Shapes:
    network = feed_forward(h, i) if h.experts is None else mixture(h)
    attention = grouped_attention(h, i) | head_norms(h)
    return norms(h.width, "attn_norm", "ffn_norm") | attention | network


def gpt_oss(h: Hyperparameters, i: int) -> Shapes:
    attention = bias(grouped_attention(h, i), "attn_q", "attn_k", "attn_v", "attn_output")
    experts = mixture(h)
    names = ("ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps")
    return (
        norms(h.width, "attn_norm", "post_attention_norm")
        | attention
        | {"attn_sinks.weight": (h.heads[i],)}
        | bias(experts, *names)
    )


def gemma2(h: Hyperparameters, i: int) -> Shapes:
    names = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
    return norms(h.width, *names) | grouped_attention(h, i) | feed_forward(h, i)


def gemma3(h: Hyperparameters, i: int) -> Shapes:
    return gemma2(h, i) | head_norms(h)


def phi3(h: Hyperparameters, i: int) -> Shapes:
    split = grouped_attention(h, i)
    joint = sum(split[f"attn_{part}.weight"][1] for part in "qkv")
    attention: Shapes = {
        "attn_qkv.weight": (h.width, joint),
        "attn_output.weight": split["attn_output.weight"],
    }
    return norms(h.width, "attn_norm", "ffn_norm") | attention | feed_forward(h, i, fused=True)


def deepseek2(h: Hyperparameters, i: int) -> Shapes:
    # DeepSeek-V3 and R1 correct the scores of their router; V2 does not, and has fewer experts.
    correction = h.experts is not None and h.experts.count >= 256
    network = feed_forward(h, i) if _dense(h, i) else mixture(h, correction=correction)
    return norms(h.width, "attn_norm", "ffn_norm") | latent_attention(h, i) | network


def glm4(h: Hyperparameters, i: int) -> Shapes:
    names = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
    attention = grouped_attention(h, i)
    return norms(h.width, *names) | attention | feed_forward(h, i, fused=True)


def glm4moe(h: Hyperparameters, i: int) -> Shapes:
    network = feed_forward(h, i) if _dense(h, i) else mixture(h, correction=True)
    attention = bias(grouped_attention(h, i), "attn_q", "attn_k", "attn_v")
    # GLM-4.5 normalises its heads, and the smaller GLM-4.5-Air does not.
    if h.layers > 46:
        attention |= head_norms(h)
    return norms(h.width, "attn_norm", "post_attention_norm") | attention | network


def qwen3next(h: Hyperparameters, i: int, split: bool = False) -> Shapes:
    attention = grouped_attention(h, i, gate=True) | head_norms(h)
    mixer = attention if h.attentive[i] else delta_net(h, split)
    network = feed_forward(h, i) if h.experts is None else mixture(h, shared_gate=True)
    return norms(h.width, "attn_norm", "post_attention_norm") | mixer | network


def qwen35(h: Hyperparameters, i: int) -> Shapes:
    return qwen3next(h, i, split=True)


def mamba2(h: Hyperparameters, i: int) -> Shapes:
    return norms(h.width, "attn_norm") | state_space(h)


def falcon_h1(h: Hyperparameters, i: int) -> Shapes:
    return llama(h, i) | state_space(h, norm=False)


def command_r(h: Hyperparameters, i: int) -> Shapes:
    shapes = norms(h.width, "attn_norm") | grouped_attention(h, i) | feed_forward(h, i)
    if h.architecture == "command-r" and h.layers >= 64:
        shapes["attn_q_norm.weight"] = (h.key_size, h.heads[i])
        shapes["attn_k_norm.weight"] = (h.key_size, h.kv_heads[i])
    return shapes


def starcoder2(h: Hyperparameters, i: int) -> Shapes:
    attention = bias(grouped_attention(h, i), "attn_q", "attn_k", "attn_v", "attn_output")
    network = bias(feed_forward(h, i, gate=False), "ffn_up", "ffn_down")
    weights = norms(h.width, "attn_norm", "ffn_norm")
    biases = {name.replace("weight", "bias"): shape for name, shape in weights.items()}
    return weights | biases | attention | network


def bitnet(h: Hyperparameters, i: int) -> Shapes:
    inner: Shapes = {"attn_sub_norm.weight": (h.width,), "ffn_sub_norm.weight": (h.hidden[i],)}
    return llama(h, i) | inner


def _dense(h: Hyperparameters, i: int) -> bool:
    return h.experts is None or i < h.experts.dense_layers
