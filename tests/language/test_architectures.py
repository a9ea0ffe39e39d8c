"""The table of architectures."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.language.architectures import (
    ARCHITECTURES,
    BY_MODEL_TYPE,
    configured_architecture,
    named_architecture,
)
from situate.language.config import config_of
from tests.language.configs import CONFIGS

LLAMA = {
    "llama.block_count": 4,
    "llama.embedding_length": 256,
    "llama.attention.head_count": 4,
}
GEMMA3 = {
    "gemma3.block_count": 12,
    "gemma3.embedding_length": 256,
    "gemma3.attention.head_count": 4,
    "gemma3.attention.sliding_window": 512,
}


def test_every_architecture_has_a_model_among_the_tests():
    tested = {config_of(config).architecture.name for config in CONFIGS.values()}
    assert set(ARCHITECTURES) - tested == {"qwen3", "qwen35", "qwen35moe", "cohere2"}
    assert len(BY_MODEL_TYPE) == sum(len(entry.model_types) for entry in ARCHITECTURES.values())


def test_defaults_are_those_of_llama_cpp():
    sizes = named_architecture("llama").sizes(LLAMA)
    assert sizes.kv_heads == sizes.heads == (4,) * 4
    assert (sizes.key_size, sizes.value_size) == (64, 64)
    assert (sizes.experts, sizes.latent, sizes.recurrence) == (None, None, None)
    assert not any(sizes.windowed)


def test_windows_follow_the_pattern_of_the_file_or_of_the_architecture():
    gemma = named_architecture("gemma3")
    assert gemma.sizes(GEMMA3).windowed == ((True,) * 5 + (False,)) * 2
    every_third = GEMMA3 | {"gemma3.attention.sliding_window_pattern": 3}
    assert gemma.sizes(every_third).windowed == (True, True, False) * 4
    listed = GEMMA3 | {"gemma3.attention.sliding_window_pattern": (True, False) * 6}
    assert gemma.sizes(listed).windowed == (True, False) * 6
    assert gemma.sizes(GEMMA3 | {"gemma3.attention.sliding_window": 0}).window == 0


def test_windows_that_llama_cpp_ignores_are_ignored():
    sizes = named_architecture("llama").sizes(LLAMA | {"llama.attention.sliding_window": 4096})
    assert not any(sizes.windowed)


def test_one_layer_in_four_is_attentive_where_most_are_recurrent():
    sizes = config_of(CONFIGS["Qwen3-Next-80B"]).sizes
    assert sizes.attentive[:8] == (False, False, False, True) * 2
    assert tuple(not entry for entry in sizes.attentive) == sizes.recurrent


def test_layers_for_guesses_come_last():
    sizes = config_of(CONFIGS["GLM-4.5-Air"]).sizes
    assert (sizes.layers, sizes.draft_layers, sizes.all_layers) == (46, 1, 47)


def test_unknown_architectures_are_refused_by_name():
    with pytest.raises(ReadError, match=r"'gemma4', which situate does not know; did you mean"):
        named_architecture("gemma4")
    with pytest.raises(ReadError, match=r"model_type 'bert', .* shows how to add one"):
        configured_architecture("bert")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"llama.block_count": 10**6}, "must be a whole number from 0 to 1024, got 1000000"),
        ({"llama.block_count": -1}, "got -1"),
        ({"llama.block_count": "many"}, "got 'many'"),
        ({"llama.block_count": 0}, "no layers"),
        ({"llama.embedding_length": 2.5}, "got 2.5"),
        ({"llama.embedding_length": 2**40}, "from 0 to 2147483648"),
        ({"llama.attention.head_count": (4, 4)}, "must be a number or 4 of them"),
        ({"llama.expert_count": 8, "llama.expert_used_count": 9}, "from 0 to 8, got 9"),
        ({"llama.expert_count": 8, "llama.expert_used_count": 0}, "must be at least 1"),
        ({"llama.expert_count": 8}, "has no llama.expert_used_count"),
    ],
)
def test_absurd_sizes_are_refused(change, message):
    with pytest.raises(ReadError, match=message):
        named_architecture("llama").sizes(LLAMA | change)


@pytest.mark.parametrize("key", LLAMA)
def test_missing_sizes_are_named(key):
    with pytest.raises(ReadError, match=f"has no {key}"):
        named_architecture("llama").sizes({k: v for k, v in LLAMA.items() if k != key})
