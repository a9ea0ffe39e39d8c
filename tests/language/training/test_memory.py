"""Memory against the formulas of the papers and a published measurement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from situate.language.training.layout import SCHEDULES, LayoutTable, Run
from situate.language.training.memory import (
    StageMemory,
    first_rank,
    last_rank,
    peak_memory,
    stage_memory,
    stage_weights,
)
from situate.language.training.recipes import find_recipe
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


# Logits.
def test_the_last_stage_holds_gradients_of_logits_for_its_late_gradients():
    table = table_of(*[{"pp": 4, "count": 8, "schedule": schedule} for schedule in SCHEDULES[:3]])
    plain, late, later = stage_memory(GPT, run_of(), table, last_rank(table)).roles["logits"]
    assert late - plain == pytest.approx(3 * 2 * 4096 * GPT.vocabulary)
    assert later - plain == pytest.approx(6 * 2 * 4096 * GPT.vocabulary)


# ZB-V: a micro-batch ends on the stage where it began.
def test_a_v_has_both_ends_of_the_model_on_its_first_stage():
    table = table_of(*[{"pp": 4, "vp": 2, "count": 8, "schedule": "zero-bubble-v"}] * 4)
    roles = stage_memory(GPT, run_of(), table, np.arange(4)).roles
    assert roles["logits"][0] > roles["logits"][1:].max() == 0
    # The output is no copy of the embedding there.
    elements = GPT.layer_weights / 4 + GPT.embedding_weights + GPT.hidden
    assert roles["weights"][0] == pytest.approx(2 * elements)
    assert roles["weights"][3] == pytest.approx(2 * GPT.layer_weights / 4)


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


# What programs keep beside activations.
def test_the_head_reads_the_stream_and_its_gradient():
    one, divided = (
        float(last_stage(model, run_of(), table_of({"tp": 4, "sp": True})).roles["logits"][0])
        for model in (GPT, replace(GPT, vocabulary=0))
    )
    assert one > divided == 4096 * 2 * GPT.hidden * (2 / 4 + 2)


def test_pipelines_that_join_outputs_keep_the_logits_of_all_micro_batches():
    run = run_of("fsdp2")
    software = replace(run.recipe.software, keeps_outputs=True)
    keeping = replace(run, recipe=replace(run.recipe, software=software))
    table = table_of({"pp": 2, "count": 4}, {"pp": 2, "count": 64})
    few, many = last_stage(GPT, keeping, table).roles["logits"]
    plain = last_stage(GPT, run, table).roles["logits"]
    outputs = 2 * 4096 * GPT.vocabulary
    assert few - plain[0] == 4 * outputs
    assert many == 2 * 64 * outputs


def test_predictors_are_layers_of_the_last_stage_with_logits_of_their_own():
    table = table_of({"pp": 2, "count": 2}, {"pp": 2, "count": 2, "mtp": 1})
    last, first = (
        stage_memory(LLAMA_8B, run_of(), table, rank) for rank in (table.pp - 1, 0 * table.pp)
    )
    (weights, more), hidden = last.roles["weights"], LLAMA_8B.hidden
    layer = LLAMA_8B.layer_weights / LLAMA_8B.layers
    added = layer + 2 * hidden**2 + 3 * hidden + LLAMA_8B.embedding_weights
    assert more - weights == pytest.approx(2 * added)
    logits = last.roles["logits"]
    assert logits[1] - logits[0] == 4 * 4096 * LLAMA_8B.vocabulary
    assert np.ptp(first.allocated) == 0


def test_tensor_parallelism_leaves_compressing_matrices_whole():
    latent = replace(LLAMA_8B, latent=512)
    plain, divided = (
        float(stage_weights(model, table_of({"tp": 8}), np.zeros(1, int))[0][0])
        for model in (LLAMA_8B, latent)
    )
    assert divided - plain == 32 * 512 * 4096 * (1 - 1 / 8)


# Muon: Adam updates the embedding and the output, and no replica divides a tensor.
def test_muon_has_two_moments_at_the_ends():
    run = Run(run_of().layout, 4096, find_recipe("megatron", None, "muon"))
    moments = float(peak_memory(LLAMA_8B, run, table_of({})).roles["moments"][0])
    ends = 2 * LLAMA_8B.embedding_weights
    assert moments == 4 * LLAMA_8B.parameters + 4 * ends


def test_a_replica_has_the_states_of_muons_whole_embedding():
    run = Run(run_of().layout, 4096, find_recipe("megatron", None, "muon"))
    roles = peak_memory(GPT, run, table_of({"dp": 64, "zero": 1})).roles
    assert roles["masters"][0] == 4 * GPT.embedding_weights
    assert roles["moments"][0] == 8 * GPT.embedding_weights


def test_it_has_its_experts_too():
    run = Run(run_of().layout, 4096, find_recipe("megatron", None, "muon"))
    roles = peak_memory(MIXTRAL, run, table_of({"dp": 1024, "ep": 8, "zero": 1})).roles
    experts = 32 * MIXTRAL.expert_weights / (1024 / 8)
    assert roles["masters"][0] == 4 * (MIXTRAL.embedding_weights + experts)
    assert roles["moments"][0] == 8 * MIXTRAL.embedding_weights + 4 * experts


def test_tensor_parallelism_leaves_layers_before_the_output_whole():
    pooled = replace(GPT, head_weights=1000)
    plain, more = (
        stage_weights(model, table_of({"tp": 8, "pp": 2}), np.ones(1, int))[0][0]
        for model in (GPT, pooled)
    )
    assert more - plain == pooled.parameters - GPT.parameters == 1000


def test_reserved_bytes_include_holes_and_buffers():
    memory = peak_memory(GPT, run_of(), table_of({"dp": 2}))
    assert memory.reserved[0] > memory.allocated[0] + memory.roles["communication"][0]


def test_zero_3_gathers_layers_and_pipelines_all_of_them():
    table = table_of({"dp": 8, "zero": 3}, {"dp": 4, "pp": 2, "zero": 3, "count": 2})
    gathered = peak_memory(LLAMA_8B, run_of("fsdp2"), table).roles["gathered"]
    assert 0 < gathered[0] < gathered[1]


def test_hybrid_sharding_divides_states_among_a_part_of_the_replicas():
    assert states("fsdp2", dp=8, zero=3, shard=4) == pytest.approx(16 / 4 * GPT.parameters)
