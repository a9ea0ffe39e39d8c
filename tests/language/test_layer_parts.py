"""Parts of layers."""

from __future__ import annotations

from situate.language.config import config_of
from situate.language.layer_parts import bias, feed_forward, mixture, norms, state_space
from tests.language.configs import CONFIGS


def test_parts_of_layers():
    assert norms(8, "attn_norm") == {"attn_norm.weight": (8,)}
    assert bias({"a.weight": (8, 4, 2)}, "a")["a.bias"] == (4, 2)


def test_a_feed_forward_network_has_a_gate_of_its_own_a_joint_one_or_none():
    sizes = config_of(CONFIGS["Llama-3.1-8B"]).sizes
    assert len(feed_forward(sizes, 0)) == 3
    assert len(feed_forward(sizes, 0, gate=False)) == 2
    assert feed_forward(sizes, 0, fused=True)["ffn_up.weight"] == (4096, 2 * 14336)


def test_a_mixture_has_shared_experts_only_where_the_model_has():
    assert len(mixture(config_of(CONFIGS["Qwen3-30B-A3B"]).sizes)) == 4
    shared = mixture(config_of(CONFIGS["Qwen1.5-MoE-A2.7B"]).sizes, shared_gate=True)
    assert shared["ffn_up_shexp.weight"] == (2048, 5632)
    assert shared["ffn_gate_inp_shexp.weight"] == (2048,)


def test_a_state_space_layer_projects_to_gate_convolution_and_time_steps():
    sizes = config_of(CONFIGS["Mamba2-2.7B"]).sizes
    inner, heads = 5120, 80
    assert state_space(sizes)["ssm_in.weight"] == (2560, 2 * inner + 2 * 128 + heads)
    assert "ssm_norm.weight" not in state_space(sizes, norm=False)
