"""The tensors of a layer: parts that architectures share, then the layers of each architecture.

Names and shapes are those of llama.cpp (`src/models/`); elements of a row come first. A function
takes the sizes of a model and the number of a layer.
"""

from __future__ import annotations

from situate.language.hyperparameters import Hyperparameters

Shapes = dict[str, tuple[int, ...]]
"""Shapes of tensors by name, without the layer in front: `attn_q.weight`."""


def bias(shapes: Shapes, *names: str) -> Shapes:
    """The tensors, with a bias for each that is named."""
    biases = {f"{name}.bias": shapes[f"{name}.weight"][1:] for name in names}
    return shapes | biases


def norms(size: int, *names: str) -> Shapes:
    """Normalisations of vectors of a size."""
    return {f"{name}.weight": (size,) for name in names}


def grouped_attention(h: Hyperparameters, i: int, gate: bool = False) -> Shapes:
    """Queries, keys and values in heads; with `gate`, the queries carry a gate of their size."""
    queries = h.heads[i] * h.key_size
    return {
        "attn_q.weight": (h.width, queries * (1 + gate)),
        "attn_k.weight": (h.width, h.kv_heads[i] * h.key_size),
        "attn_v.weight": (h.width, h.kv_heads[i] * h.value_size),
        "attn_output.weight": (h.heads[i] * h.value_size, h.width),
    }


def head_norms(h: Hyperparameters) -> Shapes:
    """Normalisations of every head of queries and keys."""
    return norms(h.key_size, "attn_q_norm", "attn_k_norm")


def latent_attention(h: Hyperparameters, i: int) -> Shapes:
    """Multi-head latent attention; keys and values are decompressed by one matrix or by two."""
    mla, heads = h.latent, h.heads[i]
    assert mla is not None
    shapes: Shapes = {"attn_q.weight": (h.width, heads * mla.key)}
    if mla.query_rank:
        shapes = {
            "attn_q_a.weight": (h.width, mla.query_rank),
            "attn_q_a_norm.weight": (mla.query_rank,),
            "attn_q_b.weight": (mla.query_rank, heads * mla.key),
        }
    plain = mla.key - mla.rope
    if mla.split:
        shapes["attn_k_b.weight"] = (plain, mla.cache_rank, heads)
        shapes["attn_v_b.weight"] = (mla.cache_rank, mla.value, heads)
    else:
        shapes["attn_kv_b.weight"] = (mla.cache_rank, heads * (plain + mla.value))
    return shapes | {
        "attn_kv_a_mqa.weight": (h.width, mla.cache_rank + mla.rope),
        "attn_kv_a_norm.weight": (mla.cache_rank,),
        "attn_output.weight": (heads * mla.value, h.width),
    }


def delta_net(h: Hyperparameters, split: bool) -> Shapes:
    """A gated delta net; `split` if its two gates are matrices of their own."""
    r = h.recurrence
    assert r is not None
    gates: Shapes = {"ssm_ba.weight": (h.width, 2 * r.heads)}
    if split:
        gates = {f"ssm_{gate}.weight": (h.width, r.heads) for gate in ("alpha", "beta")}
    return gates | {
        "attn_qkv.weight": (h.width, r.convolution),
        "attn_gate.weight": (h.width, r.inner),
        "ssm_conv1d.weight": (r.kernel, r.convolution),
        "ssm_dt.bias": (r.heads,),
        "ssm_a": (r.heads,),
        "ssm_norm.weight": (r.inner // r.heads,),
        "ssm_out.weight": (r.inner, h.width),
    }


def state_space(h: Hyperparameters, norm: bool = True) -> Shapes:
    """A layer of Mamba-2."""
    r = h.recurrence
    assert r is not None
    shapes: Shapes = {
        "ssm_in.weight": (h.width, r.inner + r.convolution + r.heads),
        "ssm_conv1d.weight": (r.kernel, r.convolution),
        "ssm_conv1d.bias": (r.convolution,),
        "ssm_dt.bias": (r.heads,),
        "ssm_a": (1, r.heads),
        "ssm_d": (1, r.heads),
        "ssm_out.weight": (r.inner, h.width),
    }
    return shapes | ({"ssm_norm.weight": (r.inner // r.groups, r.groups)} if norm else {})


def feed_forward(h: Hyperparameters, i: int, gate: bool = True, fused: bool = False) -> Shapes:
    """A feed-forward network, with a gate or without; `fused` if gate and input are one matrix."""
    shapes: Shapes = {
        "ffn_up.weight": (h.width, h.hidden[i] * (1 + fused)),
        "ffn_down.weight": (h.hidden[i], h.width),
    }
    return shapes | ({"ffn_gate.weight": (h.width, h.hidden[i])} if gate and not fused else {})


def mixture(h: Hyperparameters, shared_gate: bool = False, correction: bool = False) -> Shapes:
    """A mixture of experts with its router, and shared experts where the model has them.

    Args:
        h: sizes.
        shared_gate: the shared experts have a gate.
        correction: the router adds a bias to its scores.
    """
    e = h.experts
    assert e is not None
    shapes: Shapes = {
        "ffn_gate_inp.weight": (h.width, e.count),
        "ffn_gate_exps.weight": (h.width, e.width, e.count),
        "ffn_up_exps.weight": (h.width, e.width, e.count),
        "ffn_down_exps.weight": (e.width, h.width, e.count),
    }
    if correction:
        shapes["exp_probs_b.bias"] = (e.count,)
    if e.shared_width:
        shapes |= {
            "ffn_gate_shexp.weight": (h.width, e.shared_width),
            "ffn_up_shexp.weight": (h.width, e.shared_width),
            "ffn_down_shexp.weight": (e.shared_width, h.width),
        }
        if shared_gate:
            shapes["ffn_gate_inp_shexp.weight"] = (h.width,)
    return shapes


def _dense(h: Hyperparameters, i: int) -> bool:
    return h.experts is None or i < h.experts.dense_layers


# Layers of the architectures.
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


def draft_head(h: Hyperparameters) -> Shapes:
    """The tensors with which a layer for guesses joins its two inputs."""
    return norms(h.width, "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm") | {
        "nextn.eh_proj.weight": (2 * h.width, h.width)
    }
