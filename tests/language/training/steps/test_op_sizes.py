"""Sizes of ops."""

from __future__ import annotations

import pytest

from situate.language.training.steps.division import blocks_of, equal_division
from situate.language.training.steps.exchanges import Rings
from situate.language.training.steps.op_sizes import OpSizes
from situate.language.training.steps.program import EMBEDDING
from situate.language.training.steps.site import find_site
from tests.language.training.runs import GPT, run_of


def sizes_of(recipe: str = "megatron", cluster: str = "h100-8", **degrees) -> OpSizes:
    run = run_of(recipe, **degrees)
    blocks = blocks_of(equal_division(GPT, run.layout))
    return OpSizes(GPT, run, find_site(cluster), Rings.of(run.layout), blocks)


# Seconds by GPU.
def test_a_slower_gpu_takes_longer():
    seconds = sizes_of(cluster="RTX 3080+RTX 4090", dp=2, count=2).seconds("attention.forward", 0)
    assert seconds["RTX 3080"] > seconds["RTX 4090"] > 0


def test_the_head_has_one_op_for_both_directions():
    sizes = sizes_of(dp=8, count=2)
    assert sizes.seconds("head.forward", 12)["H100-SXM5-80GB"] > 0
    assert sizes.workspace("head.forward", 12) > 0
    assert set(sizes.seconds("embedding.forward", EMBEDDING).values()) == {0.0}


# Collectives: the part that nothing hides stands on the device, the rest is a transfer.
def test_gradients_are_reduced_once_a_step_or_in_every_micro_batch():
    once, often = sizes_of(dp=8, zero=1, count=2), sizes_of("fsdp2", dp=8, zero=3, count=2)
    assert once.hidden_seconds("gradients", 0) > 0
    assert once.hidden_seconds("scatter", 0) > 0
    assert often.hidden_seconds("gradients", 0) == 0
    assert often.hidden_seconds("gather.forward", 0) > 0


def test_replicas_with_whole_states_gather_no_weights():
    sizes = sizes_of(dp=8, zero=0, count=2)
    assert sizes.hidden_seconds("weights", 0) == 0
    assert sizes.hidden_seconds("gradients", 0) > sizes_of(dp=8, zero=1, count=2).hidden_seconds(
        "gradients", 0
    )


# Bytes.
def test_a_block_keeps_less_than_its_layers_whose_input_another_block_has():
    sizes = sizes_of(dp=8, count=2)
    assert sizes.activations(0) == pytest.approx(
        sizes.bytes.activations - sizes.bytes.stream, abs=1
    )
    full = sizes_of(dp=8, count=2, recompute="full")
    assert full.activations(0) == 0
    assert full.workspace("attention.backward", 0) > 0
