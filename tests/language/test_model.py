"""Models: layers, parameters, bytes by type and role."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.language.cache import CacheOptions
from situate.language.config import config_of
from situate.language.model import (
    LanguageModel,
    assemble,
    gguf_layer,
    gguf_role,
    typed_weights,
)
from situate.language.reading import model_of_config
from situate.language.tensor_types import TYPES
from tests.language.configs import CONFIGS


def model(name: str, file_type: str = "Q4_K_M") -> LanguageModel:
    return model_of_config(config_of(CONFIGS[name]), file_type, name)


# Millions of parameters, of all tensors and of those that a token uses, from the models' cards.
@pytest.mark.parametrize(
    ("name", "millions", "active"),
    [
        ("Qwen3-235B-A22B", 235_094, 22_191),
        ("Qwen3-30B-A3B", 30_532, 3_353),
        ("DeepSeek-R1", 671_026, 37_552),
        ("DeepSeek-V2-Lite", 15_706, 2_661),
        ("Gemma-3-27B", 27_009, 27_009),
        ("Gemma-2-9B", 9_242, 9_242),
        ("GLM-Z1-32B", 32_566, 32_566),
        ("GLM-4.5-Air", 106_852, 13_424),
        ("Qwen3-Next-80B", 79_674, 3_875),
        ("gpt-oss-120b", 116_829, 5_712),
        ("Llama-3.1-8B", 8_030, 8_030),
        ("Mistral-7B", 7_242, 7_242),
        ("Mixtral-8x7B", 46_703, 12_880),
        ("Qwen2.5-7B", 7_616, 7_616),
        ("Qwen1.5-MoE-A2.7B", 14_316, 2_689),
        ("Phi-3-mini", 3_821, 3_821),
        ("Mamba2-2.7B", 2_703, 2_703),
        ("Falcon-H1-7B", 7_586, 7_586),
        ("Command-R-35B", 34_981, 34_981),
        ("StarCoder2-15B", 15_958, 15_958),
        ("BitNet-2B", 2_413, 2_413),
    ],
)
def test_parameters_are_those_of_the_published_model(name, millions, active):
    entry = model(name)
    assert entry.parameters / 1e6 == pytest.approx(millions, abs=0.6)
    assert entry.active_parameters / 1e6 == pytest.approx(active, abs=0.6)


# GiB that llama.cpp printed for published files.
@pytest.mark.parametrize(
    ("name", "file_type", "gib"),
    [
        ("Qwen3-235B-A22B", "Q4_K_M", 132.386),
        ("Qwen3-235B-A22B", "Q6_K", 179.754),
        ("Qwen3-235B-A22B", "Q8_0", 232.769),
        ("Qwen3-30B-A3B", "Q5_K_M", 20.228),
        ("DeepSeek-R1", "Q8_0", 664.295),
        ("Gemma-3-27B", "Q4_K_M", 15.404),
    ],
)
def test_bytes_are_those_of_published_files(name, file_type, gib):
    assert model(name, file_type).size / 2**30 == pytest.approx(gib, abs=6e-4)


def test_sums_by_type_and_by_role_are_the_size():
    entry = model("Qwen3-30B-A3B")
    assert sum(entry.bytes_by_type().values()) == sum(entry.bytes_by_role().values()) == entry.size
    assert next(iter(entry.bytes_by_role())) == "experts"
    assert sum(layer.size for layer in entry.layers) < entry.size
    assert {layer.experts.count for layer in entry.layers if layer.experts} == {128}


def test_the_first_layers_of_deepseek_are_dense():
    layers = model("DeepSeek-R1").layers
    assert [layer.experts is None for layer in layers[:4]] == [True, True, True, False]


def test_layers_for_guesses_are_kept_apart():
    entry = model("GLM-4.5-Air")
    assert len(entry.layers) == 46
    assert {weight.role for weight in entry.draft} == {"draft"}
    assert not set(entry.draft) & set(entry.weights)


def test_a_tied_embedding_counts_once():
    entry = model("Command-R-35B")
    assert entry.tied
    assert [weight.name for weight in entry.output] == ["output_norm.weight"]
    assert not model("Llama-3.1-8B").tied


def test_the_cache_grows_with_the_layers_that_see_everything():
    entry = model("Gemma-3-27B")
    assert entry.growth() == 10 * 2 * 16 * 128 * 2
    assert entry.growth("Q8_0", "Q8_0") == 10 * 2 * 16 * 128 * 34 / 32
    assert model("DeepSeek-R1").growth() == 61 * 576 * 2
    assert model("Mamba2-2.7B").growth() == 0
    assert model("Mamba2-2.7B").state_bytes(2) == 2 * model("Mamba2-2.7B").state_bytes() > 0
    options = CacheOptions(32768)
    assert entry.cache_bytes(options) == sum(layer.cache.bytes(options) for layer in entry.layers)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("token_embd.weight", "embedding"),
        ("output.weight", "output"),
        ("output_norm.weight", "norm"),
        ("blk.3.attn_q.weight", "attention"),
        ("blk.3.attn_q_norm.weight", "norm"),
        ("blk.3.attn_output.weight", "attention"),
        ("blk.3.ffn_down.weight", "feed-forward"),
        ("blk.3.ffn_down_exps.weight", "experts"),
        ("blk.3.ffn_up_exps.bias", "experts"),
        ("blk.3.ffn_down_shexp.weight", "shared experts"),
        ("blk.3.ffn_gate_inp_shexp.weight", "shared experts"),
        ("blk.3.ffn_gate_inp.weight", "router"),
        ("blk.3.exp_probs_b.bias", "router"),
        ("blk.3.ssm_in.weight", "recurrent"),
        ("blk.3.nextn.eh_proj.weight", "draft"),
        ("blk.9.attn_q.weight", "draft"),
        ("rope_freqs.weight", "other"),
    ],
)
def test_roles_follow_the_names_of_gguf(name, role):
    assert gguf_role(name, gguf_layer(name), 9) == role


def test_layers_follow_the_names_of_gguf():
    assert gguf_layer("blk.12.attn_q.weight") == 12
    assert gguf_layer("blk.x.attn_q.weight") is None
    assert gguf_layer("v.blk.1.attn_q.weight") is None


def test_models_without_parts_are_refused():
    sizes = config_of(CONFIGS["Llama-3.1-8B"]).sizes
    whole = model("Llama-3.1-8B").weights
    with pytest.raises(ReadError, match="has no embedding"):
        assemble(whole[1:], sizes, "x", "gguf")
    with pytest.raises(ReadError, match="has no tensors of layer 7 of 32"):
        assemble([w for w in whole if w.layer != 7], sizes, "x", "gguf")


def test_shapes_that_cannot_be_are_refused():
    with pytest.raises(ReadError, match=r"the shape \[0, 4\]"):
        typed_weights({"a.weight": (0, 4)}, {"a.weight": TYPES["F32"]}, 1)
    with pytest.raises(ReadError, match="the shape"):
        typed_weights({"a.weight": (2**40, 2**40)}, {"a.weight": TYPES["F32"]}, 1)
