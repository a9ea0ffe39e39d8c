"""Layouts as texts, with defaults and bad words."""

from __future__ import annotations

import pytest

from situate.errors import SituateError
from situate.language.training.layout import Layout
from situate.language.training.layout_text import parse_layout, parse_request
from tests.language.training.runs import LLAMA_8B


# Texts of layouts.
def test_missing_degrees_have_defaults():
    run = parse_layout("tp=4,pp=2", LLAMA_8B, 16)
    assert run.layout == Layout(dp=2, tp=4, pp=2, micro=1, count=8, zero=1, sp=True)
    assert run.sequence == 4096
    assert run.recipe.name == "megatron"


def test_a_layout_is_read_again_from_its_text():
    text = "dp=2,tp=4,pp=2,vp=4,micro=2,batch=64,zero=1,sp=off,recompute=selective"
    run = parse_layout(text, LLAMA_8B, 16)
    assert run.layout.count == 16
    assert parse_layout(f"{run.layout},sp=off", LLAMA_8B, 16).layout == run.layout


def test_a_request_leaves_the_degrees_to_the_search():
    run, batch = parse_request("auto,batch=64,seq=8192,recipe=fsdp2,precision=fp8", LLAMA_8B)
    assert (run.sequence, batch, run.recipe.name, run.recipe.precision) == (
        *(8192, 64, "fsdp2", "fp8"),
    )
    with pytest.raises(SituateError, match="chooses tp: leave it out"):
        parse_request("auto,tp=2", LLAMA_8B)


# Words and numbers that no layout has are one line.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tp=8,dp=1,pp=1,foo=2", "unknown key 'foo'"),
        ("tp=2,tp=2", "tp is there twice"),
        ("recipe=fsdp2,recipe=amp", "recipe is there twice"),
        ("micro=0", "micro: must be an integer from 1"),
        ("micro=1x", "micro: must be an integer from 1"),
        ("zero=4", "zero must be 0 to 3"),
        ("sp=maybe", "sp must be on or off"),
        ("recompute=some", "must be none, selective, full or modules"),
        ("precision=fp7", "unknown precision 'fp7'"),
        ("recipe=jax", "unknown recipe 'jax'"),
        ("optimizer=adamx", "unknown optimizer 'adamx'"),
        ("recipe=pure,precision=fp32", "excludes precision fp32"),
        ("schedule=zb", "'zb': must be 1f1b, zero-bubble, zero-bubble-h2 or zero-bubble-v"),
        ("batch=9", "batch 9 is no multiple of dp 8 x micro 1 = 8"),
    ],
)
def test_a_text_that_is_no_layout_is_one_line(text, message):
    with pytest.raises(SituateError, match=r"^[^\n]+$") as error:
        parse_layout(text, LLAMA_8B, 8)
    assert message in str(error.value)
