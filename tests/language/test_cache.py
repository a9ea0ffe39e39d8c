"""Bytes of caches, compared with figures that llama.cpp and ik_llama.cpp printed."""

from __future__ import annotations

import pytest

from situate.errors import ReadError, SituateError
from situate.language.cache import CacheOptions, cache_type, layer_cache, padded
from situate.language.config import config_of
from situate.language.hyperparameters import Hyperparameters
from tests.language.configs import CONFIGS

MIB = 2**20


def sizes(name: str) -> Hyperparameters:
    return config_of(CONFIGS[name]).sizes


def total(h: Hyperparameters, options: CacheOptions) -> float:
    """MiB of all layers."""
    return sum(layer_cache(h, i).bytes(options) for i in range(h.layers)) / MIB


# Published figures: pull requests 357, 370 and 437 of ik_llama.cpp, issue 8447 of ollama.
@pytest.mark.parametrize(
    ("model", "options", "mib"),
    [
        ("Qwen3-235B-A22B", CacheOptions(32768, "Q8_0", "Q8_0"), 3196.0),
        ("Qwen3-235B-A22B", CacheOptions(32768), 6016.0),
        ("DeepSeek-R1", CacheOptions(32768, "Q8_0", "Q8_0"), 1166.62),
        ("DeepSeek-R1", CacheOptions(16384), 1098.0),
        ("DeepSeek-R1", CacheOptions(512, latent=False), 2440.0),
        ("DeepSeek-R1", CacheOptions(2048, latent=False), 9760.0),
        ("Gemma-3-27B", CacheOptions(32768, full_window=True), 15872.0),
        ("GLM-Z1-32B", CacheOptions(32768), 1952.0),
    ],
)
def test_caches_have_the_published_sizes(model, options, mib):
    assert total(sizes(model), options) == pytest.approx(mib, abs=0.01)


def test_windows_hold_the_window_and_a_ubatch_in_steps_of_256():
    h = sizes("Gemma-3-27B")
    window, full = layer_cache(h, 0), layer_cache(h, 5)
    assert (window.attention, full.attention) == ("window", "full")
    options = CacheOptions(32768)
    token = 2 * 16 * 128 * 2
    assert full.bytes(options) == 32768 * token
    assert window.bytes(options) == padded(1024 + 512) * token == 1536 * token
    assert window.bytes(CacheOptions(32768, ubatch=2000)) == 3072 * token
    assert window.bytes(CacheOptions(1000)) == 1024 * token
    assert window.bytes(CacheOptions(32768, full_window=True)) == full.bytes(options)


def test_slots_divide_the_context_and_share_it_only_where_the_cache_is_unified():
    h = sizes("Gemma-3-27B")
    full, window = layer_cache(h, 5), layer_cache(h, 0)
    token = 2 * 16 * 128 * 2
    apart, shared = CacheOptions(32768, slots=4), CacheOptions(32768, slots=4, unified=True)
    assert full.bytes(apart) == full.bytes(shared) == 32768 * token
    assert window.bytes(apart) == 4 * 1536 * token
    assert window.bytes(shared) == padded(4 * 1024 + 512) * token
    assert full.bytes(CacheOptions(1000, slots=3)) == 3 * 512 * token


def test_recurrent_states_do_not_grow_with_the_context():
    h = sizes("Qwen3-Next-80B")
    kinds = [layer_cache(h, i).attention for i in range(h.layers)]
    assert kinds.count("full") == 12
    assert kinds.count("none") == 36
    states = sum(layer_cache(h, i).state_bytes() for i in range(h.layers))
    assert states / MIB == pytest.approx(75.38, abs=0.01)
    assert layer_cache(h, 0).state_bytes(4) == 4 * layer_cache(h, 0).state_bytes()
    assert layer_cache(h, 0).bytes(CacheOptions(4096)) == 0


def test_a_layer_may_have_attention_and_a_state():
    cache = layer_cache(sizes("Falcon-H1-7B"), 0)
    assert cache.attention == "full"
    assert cache.state > 0


@pytest.mark.parametrize("field", ["context", "ubatch", "slots"])
@pytest.mark.parametrize("value", [0, -1, 2**40])
def test_absurd_options_are_refused(field, value):
    with pytest.raises(SituateError, match=f"{field}: must be 1 to"):
        CacheOptions(**({"context": 4096} | {field: value}))


def test_types_that_no_cache_has_are_refused():
    with pytest.raises(SituateError, match="cache type 'q4_k': must be one of f32, f16"):
        cache_type("q4_k")
    with pytest.raises(SituateError, match="cache type 'x'"):
        CacheOptions(4096, "x")
    odd = config_of(CONFIGS["GLM-Z1-32B"] | {"head_dim": 50}).sizes
    with pytest.raises(ReadError, match="rows of 100 elements, and Q8_0 needs"):
        layer_cache(odd, 0).bytes(CacheOptions(4096, "Q8_0"))
