"""Parts of layers that several architectures share: attention, feed-forward networks, mixtures.

Names and shapes are those of llama.cpp (`src/models/`); elements of a row come first.
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
    # The rotary part of a key is no part of the compressed vector.
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
    # One product makes the gate, the input of the convolution and the time steps.
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


def draft_head(h: Hyperparameters) -> Shapes:
    """The tensors with which a layer for guesses joins its two inputs."""
    return norms(h.width, "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm") | {
        "nextn.eh_proj.weight": (2 * h.width, h.width)
    }
