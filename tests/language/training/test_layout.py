"""Layouts as text, and the layouts that are impossible."""

from __future__ import annotations

import pytest

from situate.errors import SituateError
from situate.language.training.layout import (
    Layout,
    LayoutTable,
    parse_layout,
    parse_request,
)
from tests.language.training.runs import LLAMA_8B, MIXTRAL


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


# Impossible layouts: one line each, on the first degree at fault.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp=4,tp=4", "= 16 devices, and the cluster has 8 GPUs: dp=2 fits"),
        ("dp=3,tp=3", "= 9 devices, and the cluster has 8 GPUs"),
        ("tp=8,dp=1,pp=1,foo=2", "unknown key 'foo'"),
        ("tp=2,tp=2", "tp is there twice"),
        ("recipe=fsdp2,recipe=amp", "recipe is there twice"),
        ("micro=0", "micro: must be an integer from 1"),
        ("micro=1x", "micro: must be an integer from 1"),
        ("zero=4", "zero must be 0 to 3"),
        ("sp=maybe", "sp must be on or off"),
        ("sp=on", "sp needs tp"),
        ("recompute=some", "must be none, selective, full or modules"),
        ("precision=fp7", "unknown precision 'fp7'"),
        ("recipe=jax", "unknown recipe 'jax'"),
        ("optimizer=adamx", "unknown optimizer 'adamx'"),
        ("recipe=pure,precision=fp32", "excludes precision fp32"),
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
        ("schedule=zb", "'zb': must be 1f1b, zero-bubble, zero-bubble-h2 or zero-bubble-v"),
        ("schedule=zero-bubble", "schedule=zero-bubble needs pp"),
        ("recompute=modules", "it needs recipe=megatron, and experts or latent attention"),
        ("pp=4,schedule=zero-bubble,recompute=full", "late gradients of weights: recompute=none"),
        ("pp=4,vp=4,schedule=zero-bubble-v", "two chunks on each stage: vp=2"),
        ("pp=4,vp=2,schedule=zero-bubble-h2", "one chunk on each stage: leave vp out"),
        ("pp=4,schedule=zero-bubble,batch=22", "at least pp 4 micro-batches: 11 do not divide"),
        ("cp=2,seq=1001", "2 x cp 2 does not divide 1001 tokens"),
        ("batch=9", "batch 9 is no multiple of dp 8 x micro 1 = 8"),
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


# Tables of layouts.
def test_a_table_holds_the_layouts_as_they_were():
    layouts = [Layout(dp=2, zero=3), Layout(tp=4, sp=True, recompute="full", offload=True, zero=1)]
    table = LayoutTable.of(layouts)
    assert [table.layout(i) for i in range(2)] == layouts
    assert len(table.rows(table.tp == 4)) == 1


def test_experts_have_replicas_of_their_own():
    table = LayoutTable.of([Layout(dp=4, tp=2, cp=2, ep=4)])
    assert (table.spread[0], table.expert_spread[0], table.copies[0]) == (8, 4, 1)
