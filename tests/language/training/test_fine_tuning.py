"""Memory of training on one GPU, and the changes that make it fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.errors import SituateError
from situate.language.training.fine_tuning import (
    TuningRun,
    adapter_weights,
    changes,
    high_bytes,
    total,
    tuning_memory,
)
from situate.language.training.memory import MARGIN
from tests.language.training.runs import GPT, LLAMA_8B

BILLION = 1e9


def test_all_weights_have_sixteen_bytes_and_their_casts():
    roles = tuning_memory(LLAMA_8B, TuningRun())
    states = sum(roles[role] for role in ("weights", "gradients", "moments"))
    assert states == pytest.approx(16 * LLAMA_8B.parameters)
    assert roles["gathered"] == pytest.approx(2 * LLAMA_8B.parameters)


def test_adapters_alone_have_states():
    roles = tuning_memory(LLAMA_8B, TuningRun(rank=16))
    assert roles["gradients"] == roles["moments"] == 0
    assert roles["weights"] == pytest.approx(2 * LLAMA_8B.parameters)
    assert roles["adapters"] == 16 * adapter_weights(LLAMA_8B, 16)
    # PEFT counts 41,943,040 trainable parameters for rank 16 at all linear layers.
    assert adapter_weights(LLAMA_8B, 16) == 41_943_040


def test_four_bits_are_a_quarter_and_their_scales():
    roles = tuning_memory(LLAMA_8B, TuningRun(rank=16, weights="4-bit"))
    inner = LLAMA_8B.parameters - 2 * LLAMA_8B.embedding_weights
    expected = 0.52 * inner + 2 * 2 * LLAMA_8B.embedding_weights
    assert roles["weights"] == pytest.approx(expected)


@pytest.mark.parametrize(
    "change",
    [
        {"checkpointing": True},
        {"fused_loss": True},
        {"optimizer": "adamw8bit"},
        {"rank": 16},
        {"sequence": 1024},
        {"recipe": "pure", "optimizer": "adamw-bf16"},
    ],
)
def test_every_change_saves_memory(change):
    run = TuningRun(sequence=2048)
    assert total(LLAMA_8B, replace(run, **change)) < total(LLAMA_8B, run)


def test_99_of_100_runs_stay_below_the_margin():
    roles = tuning_memory(LLAMA_8B, TuningRun(rank=16))
    context = roles["context"]
    assert high_bytes(roles) == pytest.approx(MARGIN * (sum(roles.values()) - context) + context)
    assert all(row.high > row.bytes for row in changes(LLAMA_8B, TuningRun()))


def test_combinations_that_are_there_are_proposed_once():
    rows = changes(LLAMA_8B, TuningRun(rank=16))
    assert len({row.run for row in rows}) == len(rows)


def test_changes_end_with_the_smallest():
    run = TuningRun(batch=4)
    rows = changes(LLAMA_8B, run)
    assert min(rows, key=lambda row: row.bytes) is rows[-1]
    assert all(row.run != run for row in rows)
    names = [row.name for row in rows]
    assert len(set(names)) == len(names)


def test_a_change_that_is_there_is_not_proposed():
    run = TuningRun(checkpointing=True, fused_loss=True, rank=16, weights="4-bit", sequence=256)
    assert [row.name for row in changes(GPT, run)] == ["8-bit Adam"]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (TuningRun(batch=10**8), "--batch: must be at most 65,536, got 100,000,000"),
        (TuningRun(rank=10**6), "--lora: must be at most 65,536"),
        (TuningRun(weights="4-bit"), "give --lora"),
        (TuningRun(weights="3-bit", rank=8), "--weights '3-bit'"),
        (TuningRun(optimizer="adamx"), "unknown optimizer"),
        (TuningRun(recipe="jax"), "unknown recipe"),
    ],
)
def test_choices_that_exclude_one_another_are_refused(run, message):
    with pytest.raises(SituateError, match=message):
        tuning_memory(GPT, run)
