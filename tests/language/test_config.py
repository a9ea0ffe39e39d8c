"""`config.json` of Hugging Face."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from situate.errors import ReadError
from situate.language.config import config_of, is_config, model_name, read_config
from tests.language.configs import CONFIGS
from tests.language.files import LLAMA_CONFIG


def write(folder: Path, content: object, name: str = "config.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_configurations_are_recognised_by_their_keys(tmp_path):
    assert is_config(write(tmp_path, LLAMA_CONFIG))
    assert not is_config(write(tmp_path, {"ops": []}))
    assert not is_config(write(tmp_path, "{"))
    assert not is_config(write(tmp_path, LLAMA_CONFIG, "config.txt"))
    assert not is_config(tmp_path / "absent.json")


def test_a_model_is_named_by_its_folder_or_by_a_file_with_a_name_of_its_own(tmp_path):
    assert model_name(tmp_path / "Tiny" / "config.json") == "Tiny"
    assert model_name(tmp_path / "Tiny" / "tiny-2.json") == "tiny-2"


def test_sizes_of_a_model_with_pictures_are_those_of_its_text():
    config = config_of(CONFIGS["Gemma-3-27B"])
    assert config.architecture.name == "gemma3"
    assert (config.sizes.layers, config.sizes.window, config.tied) == (62, 1024, True)
    assert config.sizes.vocabulary == 262144


def test_latent_attention_is_compressed_as_the_converter_makes_it():
    sizes = config_of(CONFIGS["DeepSeek-R1"]).sizes
    assert sizes.latent is not None
    assert sizes.latent.split
    assert (sizes.kv_heads[0], sizes.key_size, sizes.value_size) == (1, 576, 512)
    assert sizes.draft_layers == 0
    assert config_of(CONFIGS["DeepSeek-V2-Lite"]).sizes.latent.query_rank == 0


def test_factors_of_rotary_positions_become_tensors():
    assert config_of(CONFIGS["Llama-3.1-8B"]).constants == {"rope_freqs.weight": (64,)}
    long = {"rope_scaling": {"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]}}
    assert set(config_of(CONFIGS["Phi-3-mini"] | long).constants) == {
        "rope_factors_long.weight",
        "rope_factors_short.weight",
    }


def test_lists_of_layers_say_which_have_windows_or_states():
    kinds = ["sliding_attention", "full_attention"] * 18
    sizes = config_of(CONFIGS["gpt-oss-120b"] | {"layer_types": kinds[::-1]}).sizes
    assert sizes.windowed == (False, True) * 18
    kinds = (["full_attention"] + ["linear_attention"] * 3) * 12
    sizes = config_of(CONFIGS["Qwen3-Next-80B"] | {"layer_types": kinds}).sizes
    assert sizes.recurrent[:4] == (False, True, True, True)


def test_packed_weights_are_noted():
    packed = CONFIGS["Llama-3.1-8B"] | {"quantization_config": {"quant_method": "awq"}}
    assert config_of(packed).packed == "awq"
    assert config_of(CONFIGS["Llama-3.1-8B"]).packed is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "is not valid JSON|expected"),
        ("{", "is not valid JSON|trunc"),
        ("", "the file is empty"),
        ({"hidden_size": 5}, "has no model_type"),
        ({"model_type": 5}, "has no model_type"),
        ({"model_type": "bert"}, "model_type 'bert', which situate does not know"),
        ({"model_type": "a\nb"}, r"model_type 'a\\nb'"),
        (LLAMA_CONFIG | {"num_hidden_layers": 10**9}, "llama.block_count: must be a whole"),
        (LLAMA_CONFIG | {"hidden_size": -5}, "embedding_length: must be a whole number"),
        (LLAMA_CONFIG | {"vocab_size": None}, "has no vocab_size"),
        ({**CONFIGS["DeepSeek-R1"], "kv_lora_rank": "x"}, "kv_lora_rank: must be a whole"),
        ({**CONFIGS["DeepSeek-R1"], "qk_rope_head_dim": 2**40}, "qk_rope_head_dim: must be"),
    ],
)
def test_bad_configurations_are_refused(tmp_path, content, message):
    with pytest.raises(ReadError, match=message):
        read_config(write(tmp_path, content))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(CONFIGS)), st.data())
def test_values_of_any_kind_do_no_harm(name, data):
    config = CONFIGS[name]
    key = data.draw(st.sampled_from(sorted(config)))
    with contextlib.suppress(ReadError):
        config_of(config | {key: data.draw(VALUES)})
