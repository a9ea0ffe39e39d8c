"""Memory against the formulas of the papers and a published measurement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from situate.language.training.layout import LayoutTable, Run
from situate.language.training.memory import (
    StageMemory,
    first_rank,
    in_flight,
    last_rank,
    layer_bytes,
    peak_memory,
    stage_memory,
    stage_weights,
)
from situate.language.training.software import SOFTWARE
from situate.language.training.transformer import Sizes, Transformer, transformer_of_sizes
from tests.language.training.runs import GPT, LLAMA_8B, MIXTRAL, run_of, table_of

DROPOUT = replace(SOFTWARE["megatron"], dropout=True)
STATES = ("weights", "gradients", "masters", "moments")


def last_stage(model: Transformer, run: Run, table: LayoutTable) -> StageMemory:
    return stage_memory(model, run, table, last_rank(table))


def states(recipe: str, **degrees: int) -> float:
    """Bytes of all states of the small model."""
    memory = peak_memory(GPT, run_of(recipe), table_of(degrees))
    return sum(float(memory.roles[role][0]) for role in STATES)


# States: ZeRO divides them from its stages on (arXiv:1910.02054, figure 1).
@pytest.mark.parametrize(
    ("recipe", "zero", "each"),
    [
        ("megatron", 0, 18),
        ("megatron", 1, 6 + 12 / 8),
        ("deepspeed", 1, 4 + 12 / 8),
        ("deepspeed", 2, 2 + 14 / 8),
        ("deepspeed", 3, 16 / 8),
    ],
)
def test_zero_divides_states_among_replicas(recipe, zero, each):
    assert states(recipe, dp=8, zero=zero) == pytest.approx(each * GPT.parameters)


def test_offload_leaves_masters_and_moments_to_the_host():
    assert states("deepspeed", dp=8, zero=2, offload=1) == pytest.approx(2.25 * GPT.parameters)


def test_a_tied_output_has_a_copy_on_the_last_stage():
    table = table_of({"pp": 2})
    ends = (first_rank(table), last_rank(table))
    first, last = (stage_weights(GPT, table, rank)[0][0] for rank in ends)
    assert last - first == GPT.hidden
    assert first == GPT.embedding_weights + GPT.layer_weights / 2


def test_experts_are_divided_among_their_own_devices():
    whole, divided = (
        stage_weights(MIXTRAL, table_of({"dp": 8, "ep": ep}), np.zeros(1, int))[1][0]
        for ep in (1, 8)
    )
    assert whole == 8 * divided == 32 * 8 * MIXTRAL.expert_weights


def test_only_the_ends_of_a_pipeline_have_the_embedding():
    table = table_of(*[{"pp": 4, "count": 4}] * 4)
    memory = stage_memory(GPT, run_of(), table, np.arange(4))
    weights, activations, logits = (
        memory.roles[role] for role in ("weights", "activations", "logits")
    )
    assert weights[1] == weights[2] < weights[0] < weights[3]
    assert sorted(activations, reverse=True) == activations.tolist()
    assert logits[:3].max() == 0 < logits[3]


# Activations: Korthikanti et al., equations 1, 2 and 4, without the core of attention.
def test_a_layer_stores_34_bytes_for_each_element():
    stored = layer_bytes(GPT, table_of({}), DROPOUT)
    assert stored[0] == 34 * GPT.hidden


def test_tensor_parallelism_leaves_10_bytes_whole_and_sequence_parallelism_none():
    plain, divided = (
        layer_bytes(GPT, table_of({"tp": 4, "sp": sp}), DROPOUT)[0] for sp in (False, True)
    )
    assert plain == (10 + 24 / 4) * GPT.hidden
    assert divided == 34 / 4 * GPT.hidden


def test_scores_take_five_bytes_each():
    run = run_of(sequence=1024)
    scores = replace(DROPOUT, attention="scores")
    run = replace(run, recipe=replace(run.recipe, software=scores))
    memory = last_stage(GPT, run, table_of({"micro": 4}))
    each = 34 * GPT.hidden + 5 * GPT.heads * 1024
    assert memory.roles["activations"][0] == 4096 * (12 * each + 2 * GPT.hidden)


def test_recompute_stores_the_inputs_of_layers_alone():
    kinds = ({"recompute": kind} for kind in ("none", "selective", "full"))
    memory = last_stage(LLAMA_8B, run_of("fsdp2"), table_of(*kinds))
    none, selective, full = memory.roles["activations"]
    # The embedding's result, and the inputs of 32 layers.
    assert full == 33 * 4096 * 2 * 4096
    assert full < selective < none
    # The layer that is computed again has its activations beside them, if logits are smaller.
    tiny = replace(LLAMA_8B, vocabulary=8)
    last = last_stage(tiny, run_of("fsdp2"), table_of({"recompute": "full"}))
    assert last.roles["recomputed"][0] > 0
    assert last.roles["logits"][0] == 0


def test_pipelines_hold_micro_batches_of_later_stages():
    table = table_of({"pp": 4, "count": 8}, {"pp": 4, "count": 2}, {"pp": 4, "vp": 3, "count": 8})
    # The last row: 2 x 3 + 2 x 4 + 1 chunks of a layer on the first stage, 9 on the last.
    assert in_flight(GPT, table, first_rank(table)).tolist() == [12, 6, 15]
    assert in_flight(GPT, table, last_rank(table)).tolist() == [3, 3, 9]


def test_stages_without_bubbles_hold_equally_many_micro_batches():
    late = {"pp": 4, "zero_bubble": True}
    table = table_of({**late, "count": 8}, {**late, "count": 2}, {**late, "vp": 3, "count": 8})
    # The last row: 2 x 4 + 4 chunks of a layer.
    for rank in (first_rank(table), last_rank(table)):
        assert in_flight(GPT, table, rank).tolist() == [12, 6, 12]


def test_the_last_stage_holds_gradients_of_logits_for_its_late_gradients():
    tables = [table_of({"pp": 4, "count": 8, "zero_bubble": late}) for late in (False, True)]
    plain, late = (
        float(stage_memory(GPT, run_of(), table, last_rank(table)).roles["logits"][0])
        for table in tables
    )
    assert late - plain == pytest.approx(3 * 2 * 4096 * GPT.vocabulary)


def test_interleaved_stages_hold_larger_groups_of_micro_batches_if_pp_divides_no_step():
    table = table_of({"pp": 4, "vp": 3, "count": 5}, {"pp": 4, "vp": 3, "count": 10})
    # 2 x 5 + 1 chunks on the last stage.
    assert in_flight(GPT, table, last_rank(table)).tolist() == [11, 11]


# Golden values of Megatron-LM: gpt3_mcore_te_tp1_pp4_vp1_dist_optimizer_overlap_grad_reduce and
# gpt3_mcore_te_tp1_pp4_disable_bias_linear on A100, GiB of the last rank.
@pytest.mark.parametrize(("vp", "zero", "gib"), [(3, 1, 3.644), (1, 0, 2.500)])
def test_memory_is_that_of_a_published_run(vp, zero, gib):
    model = transformer_of_sizes(
        "gpt3", Sizes( layers=12, hidden=512, heads=8, vocabulary=50304,
        gated=False, tied=True, biases=True, positions=1024,
    ))  # fmt: skip
    run = run_of(sequence=1024)
    scores = replace(DROPOUT, attention="scores")
    run = replace(run, recipe=replace(run.recipe, software=scores))
    layout = {"dp": 2, "pp": 4, "vp": vp, "micro": 4, "count": 4, "zero": zero}
    memory = last_stage(model, run, table_of(layout))
    assert memory.allocated[0] / 2**30 == pytest.approx(gib, rel=0.02)


def test_reserved_bytes_include_holes_and_buffers():
    memory = peak_memory(GPT, run_of(), table_of({"dp": 2}))
    assert memory.reserved[0] > memory.allocated[0] + memory.roles["communication"][0]


def test_zero_3_gathers_layers_and_pipelines_all_of_them():
    table = table_of({"dp": 8, "zero": 3}, {"dp": 4, "pp": 2, "zero": 3, "count": 2})
    gathered = peak_memory(LLAMA_8B, run_of("fsdp2"), table).roles["gathered"]
    assert 0 < gathered[0] < gathered[1]


def test_hybrid_sharding_divides_states_among_a_part_of_the_replicas():
    assert states("fsdp2", dp=8, zero=3, shard=4) == pytest.approx(16 / 4 * GPT.parameters)
