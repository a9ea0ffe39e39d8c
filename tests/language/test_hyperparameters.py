"""Sizes of models, and metadata by key."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.language.config import config_of
from situate.language.gguf import LongArray
from situate.language.hyperparameters import (
    Keys,
    Recurrence,
    read_experts,
    read_latent,
    read_recurrence,
)
from tests.language.configs import CONFIGS


def keys(**values: object) -> Keys:
    return Keys("x", {f"x.{name.replace('__', '.')}": value for name, value in values.items()})


def test_numbers_are_whole_though_they_may_be_written_as_floats():
    assert keys(a=3.0).size("a") == 3
    assert keys().size("a", 7) == 7
    for value in (3.5, -1, "3", float("nan"), float("inf"), (1,), LongArray(9)):
        with pytest.raises(ReadError, match=r"x\.a: must be a whole number"):
            keys(a=value).size("a")


def test_a_number_for_all_layers_or_one_for_each():
    assert keys(a=3).sizes("a", 2) == (3, 3)
    assert keys(a=(3, 4, 5)).sizes("a", 2) == (3, 4)
    with pytest.raises(ReadError, match="must be a number or 4 of them, got an array"):
        keys(a=LongArray(10**6)).sizes("a", 4)


def test_experts():
    experts = read_experts(keys(expert_count=8, expert_used_count=2), 512)
    assert experts is not None
    assert (experts.count, experts.used, experts.width, experts.shared_width) == (8, 2, 512, 0)
    deepseek = config_of(CONFIGS["DeepSeek-V2-Lite"]).sizes.experts
    assert deepseek is not None
    assert (deepseek.shared_width, deepseek.dense_layers) == (2 * 1408, 1)


def test_latent_attention_is_split_in_newer_files_only():
    old = {
        "attention__kv_lora_rank": 512,
        "attention__key_length": 192,
        "attention__value_length": 128,
        "rope__dimension_count": 64,
    }
    new = old | {"attention__key_length_mla": 192, "attention__value_length_mla": 128}
    assert read_latent(keys()) is None
    for values, split in ((old, False), (new | {"attention__key_length": 576}, True)):
        mla = read_latent(keys(**values))
        assert mla is not None
        assert (mla.key, mla.value, mla.rope, mla.split) == (192, 128, 64, split)
    with pytest.raises(ReadError, match="must be smaller than a head"):
        read_latent(keys(**old | {"rope__dimension_count": 192}))


def test_recurrent_sizes():
    assert Recurrence(4, 4096, 128, 16, 32).convolution == 8192
    assert Recurrence(4, 4096, 128, 16, 32).numbers == 3 * 8192 + 128 * 4096
    assert read_recurrence(keys()) is None
    sizes = {"ssm__inner_size": 64, "ssm__conv_kernel": 4, "ssm__state_size": 8}
    with pytest.raises(ReadError, match="sizes must not be 0"):
        read_recurrence(keys(**sizes, ssm__group_count=0, ssm__time_step_rank=1))
