"""Sizes of transformers, from configurations and from texts."""

from __future__ import annotations

import json

import pytest

from situate.errors import ReadError, SituateError
from situate.language.config import config_of
from situate.language.reading import model_of_config
from situate.language.training.transformer import (
    Sizes,
    parse_sizes,
    read_transformer,
    transformer_of_config,
    transformer_of_sizes,
    transformer_of_values,
)
from tests.language.configs import CONFIGS
from tests.language.planning.homes import DENSE, MIXTURE
from tests.language.training.runs import GPT, LLAMA_8B, MIXTRAL, parameters

DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
    "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
    "vocab_size": 129280, "max_position_embeddings": 163840,
}  # fmt: skip


# Published numbers of parameters.
@pytest.mark.parametrize(
    ("model", "billions", "active"),
    [
        (LLAMA_8B, 8.030, 8.030),
        (MIXTRAL, 46.703, 12.880),
        (transformer_of_config(config_of(DEEPSEEK_V3), "v3"), 671.0, 37.5),
    ],
)
def test_parameters_are_those_that_makers_publish(model, billions, active):
    assert parameters(model) == pytest.approx(billions, rel=1e-3)
    assert model.active_parameters / 1e9 == pytest.approx(active, rel=2e-3)


def test_flops_are_six_for_each_weight_and_those_of_causal_attention():
    pairs = GPT.layers * GPT.heads * 2 * GPT.head * 512
    weights = GPT.parameters
    assert GPT.flops(1024) == 6 * weights + 6 * pairs


def test_a_window_shortens_attention():
    window = transformer_of_config(
        config_of(DENSE | {"model_type": "gemma2", "sliding_window": 1024}), "window"
    )
    assert 0 < window.windowed < 1
    assert window.attended(8192) < 4096
    assert window.attended(512) == 256


# Models by their text.
def test_a_configuration_and_its_sizes_are_the_same_model(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(MIXTURE))
    model = read_transformer(str(tmp_path))
    text = "layers=4,hidden=512,heads=8,kv=2,head=64,ffn=1024,vocab=4096,experts=16,used=2"
    other = parse_sizes(f"{text},expert=512")
    for name in ("layers", "hidden", "kv_heads", "attention_weights", "experts", "vocabulary"):
        assert getattr(model, name) == getattr(other, name)


def test_a_text_may_have_no_gate_and_a_tied_output():
    model = parse_sizes("layers=12,hidden=512,heads=8,vocab=50304,matrices=2,tied=1")
    assert model.parameters == GPT.parameters
    assert (model.gated, model.tied) == (False, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layers=2,hidden=64,heads=4", "has no vocab="),
        ("layers=2,hidden=64,heads=4,vocab=9,foo=1", "'foo=1' is no KEY=NUMBER"),
        ("layers=2,layers=2,hidden=64,heads=4,vocab=9", "layers is there twice"),
        ("layers=0,hidden=64,heads=4,vocab=9", "layers: must be an integer from 1 to 1024"),
        ("layers=2,hidden=65,heads=4,vocab=9", "hidden 65 is no multiple of heads 4"),
        ("layers=2,hidden=64,heads=4,kv=3,vocab=9", "heads 4 is no multiple of kv 3"),
        ("layers=2,hidden=64,heads=4,vocab=9,experts=2,used=3", "used 3 is more than experts 2"),
        ("layers=2,hidden=64,heads=4,vocab=9,matrices=1", "matrices: must be 2, or 3"),
        ("layers=1024,hidden=1048576,heads=8,vocab=9", "the sizes are absurd"),
    ],
)
def test_impossible_sizes_are_one_line(text, message):
    with pytest.raises(SituateError, match=r"^[^\n]+$") as error:
        read_transformer(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "wavenet"}, "wavenet"),
        ({"hidden_size": 8}, "model_type"),
        (DENSE | {"hidden_size": 0}, "0"),
        (DENSE | {"model_type": "mamba2", "state_size": 16, "n_groups": 1}, "mamba2"),
        (DENSE | {"num_attention_heads": 7}, "num_attention_heads 7 does not divide hidden_size"),
        (DENSE | {"num_key_value_heads": 3}, "num_key_value_heads 3 does not divide"),
    ],
)
def test_configurations_without_a_transformer_are_refused(tmp_path, values, message):
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(ReadError, match="config") as error:
        read_transformer(str(tmp_path / "config.json"))
    assert message in str(error.value)


# GPT-2 has no gate, learned positions, and a tied output.
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}


def test_gpt2_is_a_configuration():
    model = transformer_of_values(GPT2, "gpt2")
    # The last normalisation has a bias besides.
    assert model.parameters == 124_439_808 - 768
    assert (model.gated, model.tied, model.context) == (False, True, 1024)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_head": 0}, "n_head: must be a positive integer"),
        ({"n_embd": "768"}, "n_embd: must be a positive integer"),
        ({"n_positions": -1}, "n_positions"),
        ({"n_head": 5}, "no multiple of heads 5"),
    ],
)
def test_a_gpt2_of_impossible_sizes_is_refused(values, message):
    with pytest.raises(ReadError, match=message):
        transformer_of_values(GPT2 | values, "gpt2")


def test_biases_are_vectors_beside_the_matrices():
    options = {"layers": 1, "hidden": 64, "heads": 4, "vocabulary": 100, "gated": False}
    plain, biased = (transformer_of_sizes("x", Sizes(**options, biases=b)) for b in (False, True))
    assert biased.attention_weights == plain.attention_weights
    assert biased.norm_weights - plain.norm_weights == 2 * 64 + 3 * 64 + 2 * 64 + 256


# Published models: as many parameters as their tensors have.
@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_has_the_parameters_of_its_tensors(name):
    config = config_of(CONFIGS[name])
    if any(config.sizes.recurrent) or not all(config.sizes.attentive):
        with pytest.raises(ReadError, match="has layers without attention"):
            transformer_of_config(config, name)
        return
    model, tensors = transformer_of_config(config, name), model_of_config(config, "F16", name)
    # Biases of experts are left out.
    assert model.parameters == pytest.approx(tensors.parameters, rel=4e-4)
    assert model.active_parameters == pytest.approx(tensors.active_parameters, rel=4e-4)
