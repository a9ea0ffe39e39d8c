"""Layers among chunks and micro-batches among replicas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.errors import SituateError
from situate.language.training.layout import Layout
from situate.language.training.steps.division import (
    JOINED_OPS,
    MAX_OPS,
    blocks_of,
    equal_division,
    unequal_division,
)
from situate.language.training.unequal import Shares
from tests.language.training.runs import GPT, LLAMA_8B


def shares_of(way: str, *shares: int) -> Shares:
    return Shares(way, shares, 2, "none", 1.0, (0.0,) * len(shares), False)


# Equal devices.
def test_the_first_chunks_take_the_layers_that_are_left():
    division = equal_division(replace(GPT, layers=10), Layout(pp=4, dp=2, count=8))
    assert division.chunks == (3, 3, 2, 2)
    assert division.counts == (8, 8)


# Unequal devices.
def test_stages_have_their_shares_of_layers():
    division = unequal_division(GPT, shares_of("layers", 9, 3), batch=16)
    assert division.chunks == (9, 3)
    assert division.counts == (8,)
    assert division.layout.pp == 2


def test_replicas_have_their_shares_of_samples():
    division = unequal_division(GPT, shares_of("samples", 10, 6), batch=16)
    assert division.chunks == (12,)
    assert division.counts == (5, 3)
    assert [division.count(member) for member in range(2)] == [5, 3]


# Blocks.
def test_small_steps_have_a_block_for_each_layer():
    blocks = blocks_of(equal_division(GPT, Layout(pp=2, count=4)))
    assert [block.layers for block in blocks] == [1] * 12
    assert [block.chunk for block in blocks] == [0] * 6 + [1] * 6
    assert blocks[0].name == "layer0"


def test_large_steps_join_layers():
    division = equal_division(LLAMA_8B, Layout(dp=64, pp=2, count=16))
    blocks = blocks_of(division)
    assert sum(block.layers for block in blocks) == 32
    assert 4 * len(blocks) * 64 * 16 <= JOINED_OPS
    assert max(block.layers for block in blocks) > 1


def test_larger_steps_have_a_block_for_each_chunk():
    blocks = blocks_of(equal_division(LLAMA_8B, Layout(dp=64, pp=2, vp=4, count=64)))
    assert [block.layers for block in blocks] == [4] * 8
    assert JOINED_OPS < 4 * len(blocks) * 64 * 64 <= MAX_OPS


def test_a_step_of_too_many_ops_is_refused():
    with pytest.raises(SituateError, match="give fewer samples, or larger micro-batches"):
        blocks_of(equal_division(LLAMA_8B, Layout(dp=1024, pp=2, count=64)))
