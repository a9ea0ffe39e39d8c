"""Impossible layouts are refused by their first degree at fault."""

from __future__ import annotations

import pytest

from situate.errors import SituateError
from situate.language.training.layout_rules import recomputations
from situate.language.training.layout_text import parse_layout
from situate.language.training.recipes import find_recipe
from tests.language.training.runs import LLAMA_8B, MIXTRAL


# One line for each rule that a layout breaks.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp=4,tp=4", "= 16 devices, and the cluster has 8 GPUs: dp=2 fits"),
        ("dp=3,tp=3", "= 9 devices, and the cluster has 8 GPUs"),
        ("sp=on", "sp needs tp"),
        ("zero=3", "Megatron has no zero=3"),
        ("recipe=deepspeed,zero=2,pp=2", "pipelines refuse zero=2"),
        ("offload=on,zero=0", "offload needs zero"),
        ("offload=on,optimizer=adamw8bit", "offload has no 8-bit states"),
        ("shard=2,zero=0", "shard needs zero"),
        ("shard=3", "shard 3 does not divide dp 8"),
        ("ep=2", "ep needs experts"),
        ("mtp=1,recipe=fsdp2", "mtp needs recipe=megatron"),
        ("vp=2", "vp needs pp"),
        ("pp=8,vp=5", "is more than 32 layers"),
        ("pp=2,vp=3,batch=32", "does not divide 32 layers"),
        ("pp=4,vp=2,batch=6", "vp needs at least pp 4 micro-batches, got 3"),
        ("pp=4,vp=2,batch=22", "at least pp 4 micro-batches: 11 do not divide into 2"),
        ("schedule=zero-bubble", "schedule=zero-bubble needs pp"),
        ("recompute=modules", "it needs recipe=megatron, and experts or latent attention"),
        ("pp=4,schedule=zero-bubble,recompute=full", "late gradients of weights: recompute=none"),
        ("pp=4,vp=4,schedule=zero-bubble-v", "two chunks on each stage: vp=2"),
        ("pp=4,vp=2,schedule=zero-bubble-h2", "one chunk on each stage: leave vp out"),
        ("pp=4,schedule=zero-bubble,batch=22", "at least pp 4 micro-batches: 11 do not divide"),
        ("cp=2,seq=1001", "2 x cp 2 does not divide 1001 tokens"),
    ],
)
def test_an_impossible_layout_is_one_line(text, message):
    with pytest.raises(SituateError, match=r"^[^\n]+$") as error:
        parse_layout(text, LLAMA_8B, 8)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "gpus", "message"),
    [
        ("tp=3", 3, "tp 3 does not divide 32 heads"),
        ("tp=64,seq=65536", 64, "tp 64 does not divide 32 heads"),
        ("ep=3", 3, "ep 3 does not divide 8 experts"),
        ("ep=8,etp=2", 8, "ep x etp does not divide"),
    ],
)
def test_heads_and_experts_must_be_divisible(text, gpus, message):
    with pytest.raises(SituateError, match=message):
        parse_layout(text, MIXTRAL, gpus)


# Megatron-LM alone repeats modules, those of mixtures.
@pytest.mark.parametrize(
    ("model", "recipe", "has_modules"),
    [(MIXTRAL, "megatron", True), (MIXTRAL, "fsdp2", False), (LLAMA_8B, "megatron", False)],
)
def test_modules_are_repeated_where_the_program_has_them(model, recipe, has_modules):
    kinds = recomputations(model, find_recipe(recipe, None, None))
    assert ("modules" in kinds) == has_modules
