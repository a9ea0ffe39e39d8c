"""The tensors of layers, compared with those of real files."""

from __future__ import annotations

from math import prod

import pytest

from situate.language.config import config_of
from situate.language.layer_parts import draft_head
from situate.language.model import gguf_shapes
from tests.language.configs import CONFIGS
from tests.language.files import table, table_rows

JOINT = "attn_kv_b.weight"
"""The matrix that ik_llama.cpp's files have beside the two into which llama.cpp splits it."""


@pytest.mark.parametrize(
    ("file", "model", "changes"),
    [
        ("deepseek-r1-mix", "DeepSeek-R1", {}),
        ("deepseek-r1-mix2", "DeepSeek-R1", {}),
        ("deepseek-v2-lite-iq4_k_r4", "DeepSeek-V2-Lite", {}),
        ("deepseek-r1-distill-qwen-7b-q4_k_m", "Qwen2.5-7B", {}),
        ("bitnet-2b", "BitNet-2B", {"tie_word_embeddings": False}),
    ],
)
def test_names_and_sizes_are_those_of_real_files(file, model, changes):
    config = config_of(CONFIGS[model] | changes)
    shapes = gguf_shapes(config.architecture, config.sizes, config.tied)
    real = {name: shape for name, shape, _ in table_rows(table(file)) if JOINT not in name}
    assert set(real) == set(shapes)
    # The same elements, though older files have matrices where newer ones have one a head.
    assert {n: prod(s) for n, s in real.items()} == {n: prod(s) for n, s in shapes.items()}


def test_layers_for_guesses_have_what_others_have_and_a_head():
    config = config_of(CONFIGS["GLM-4.5-Air"])
    shapes = gguf_shapes(config.architecture, config.sizes, config.tied)
    last = {name.removeprefix("blk.46.") for name in shapes if name.startswith("blk.46.")}
    middle = {name.removeprefix("blk.45.") for name in shapes if name.startswith("blk.45.")}
    assert last == middle | set(draft_head(config.sizes))


def test_queries_of_gated_attention_are_twice_as_wide():
    config = config_of(CONFIGS["Qwen3-Next-80B"])
    layer = config.architecture.layer(config.sizes, 3)
    assert layer["attn_q.weight"] == (2048, 2 * 16 * 256)
    assert layer["attn_output.weight"] == (16 * 256, 2048)
    assert "attn_qkv.weight" in config.architecture.layer(config.sizes, 2)
