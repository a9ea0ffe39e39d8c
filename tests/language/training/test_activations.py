"""Activations against the formulas of the papers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from situate.language.training.activations import (
    PARTS,
    in_flight,
    layer_bytes,
    layer_memory,
    layer_parts,
    repeated_norms,
)
from situate.language.training.layout import LayoutTable, Run
from situate.language.training.memory import StageMemory, first_rank, last_rank, stage_memory
from situate.language.training.transformer import Transformer
from tests.language.training.runs import GPT, LLAMA_8B, MIXTRAL, run_of, table_of


def with_software(**changes: Any) -> Run:
    """A run of Megatron-LM with other kernels."""
    recipe = run_of().recipe
    return replace(run_of(), recipe=replace(recipe, software=replace(recipe.software, **changes)))


DROPOUT = with_software(dropout=True)


def last_stage(model: Transformer, run: Run, table: LayoutTable) -> StageMemory:
    return stage_memory(model, run, table, last_rank(table))


def kept(run: Run, recompute: str = "none") -> tuple[float, float]:
    """Bytes of a layer that stay, and those that come back, for one token."""
    layer, again = layer_memory(LLAMA_8B, run, table_of({"recompute": recompute}))
    return float(layer[0]) / 4096, float(again[0]) / 4096


# Activations: Korthikanti et al., equations 1, 2 and 4, without the core of attention.
def test_a_layer_stores_34_bytes_for_each_element():
    stored = layer_bytes(GPT, DROPOUT, table_of({}))
    assert stored[0] == 34 * GPT.hidden


def test_tensor_parallelism_leaves_10_bytes_whole_and_sequence_parallelism_none():
    plain, divided = (
        layer_bytes(GPT, DROPOUT, table_of({"tp": 4, "sp": sp}))[0] for sp in (False, True)
    )
    assert plain == (10 + 24 / 4) * GPT.hidden
    assert divided == 34 / 4 * GPT.hidden


def test_scores_take_five_bytes_each():
    run = replace(with_software(attention="scores", dropout=True), sequence=1024)
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
    late = {"pp": 4, "schedule": "zero-bubble"}
    table = table_of({**late, "count": 8}, {**late, "count": 2}, {**late, "vp": 3, "count": 8})
    # The last row: 2 x 4 + 4 chunks of a layer.
    for rank in (first_rank(table), last_rank(table)):
        assert in_flight(GPT, table, rank).tolist() == [12, 6, 12]


def test_zb_h2_holds_nearly_twice_as_much_and_zb_v_no_more_than_1f1b():
    h2 = {"pp": 4, "count": 8, "schedule": "zero-bubble-h2"}
    table = table_of(h2, {**h2, "schedule": "zero-bubble-v", "vp": 2})
    for rank in (first_rank(table), last_rank(table)):
        assert in_flight(GPT, table, rank).tolist() == [3 * (2 * 4 - 1), 12]


def test_interleaved_stages_hold_larger_groups_of_micro_batches_if_pp_divides_no_step():
    table = table_of({"pp": 4, "vp": 3, "count": 5}, {"pp": 4, "vp": 3, "count": 10})
    # 2 x 5 + 1 chunks on the last stage.
    assert in_flight(GPT, table, last_rank(table)).tolist() == [11, 11]


# Parts: what selective recompute repeats, and what waits in host memory.
def test_parts_add_up_to_the_layer():
    parts = layer_parts(MIXTRAL, run_of(), table_of({}))
    assert sum(float(parts[part][0]) for part in PARTS) == pytest.approx(
        float(layer_memory(MIXTRAL, run_of(), table_of({}))[0][0]) / 4096
    )


def test_compressed_queries_keys_and_values_stay_beside_the_whole_ones():
    latent = layer_bytes(replace(LLAMA_8B, latent=512), run_of(), table_of({}))
    assert latent[0] - layer_bytes(LLAMA_8B, run_of(), table_of({}))[0] == 2 * 2 * 512


def test_selective_recompute_repeats_the_parts_of_its_program():
    run = with_software(repeated_parts=("normed", "network"))
    parts = layer_parts(LLAMA_8B, run, table_of({}))
    repeated = float(parts["normed"][0] + parts["network"][0])
    whole, _ = kept(run)
    assert kept(run, "selective") == pytest.approx((whole - repeated, repeated))


def test_offloaded_parts_are_on_the_device_for_two_layers():
    run = with_software(offloaded=("heads",))
    heads = float(layer_parts(LLAMA_8B, run, table_of({}))["heads"][0])
    whole, _ = kept(run_of())
    assert kept(run) == pytest.approx((whole - heads, 2 * heads))


@pytest.mark.parametrize(
    ("changes", "stored", "gradients"),
    [
        ({"dropout": False}, 2, 2),
        ({"dropout": True}, 5, 4),
        ({"dropout": True, "fused_softmax": False}, 7, 4),
    ],
)
def test_scores_and_their_gradients_have_the_bytes_of_their_kernel(changes, stored, gradients):
    run = with_software(attention="scores", **changes)
    count = LLAMA_8B.heads * 4096
    assert layer_parts(LLAMA_8B, run, table_of({}))["scores"][0] == stored * count
    assert kept(run)[1] == gradients * count


# Megatron-LM's modules: a normalisation before a router is a kernel of its own, one before a dense
# matrix is part of the matrix's kernel.
def test_modules_repeat_the_router_normalisation_and_the_products_of_experts():
    none, modules = table_of({}), table_of({"recompute": "modules"})
    parts = layer_parts(MIXTRAL, run_of(), none)
    dropped = float(parts["products"][0] + parts["normed"][0] / 2)
    assert dropped == 2 * 2 * 14336 + 2 * 4096
    (whole, _), (layer, again) = (layer_memory(MIXTRAL, run_of(), t) for t in (none, modules))
    assert float(whole[0] - layer[0]) == pytest.approx(4096 * dropped)
    assert float(again[0]) == pytest.approx(4096 * dropped)


def test_latent_attention_repeats_its_heads_and_both_normalisations():
    model = replace(MIXTRAL, latent=512)
    assert repeated_norms(model) == 2
    parts = layer_parts(model, run_of(), table_of({}))
    dropped = sum(float(parts[part][0]) for part in ("normed", "products", "heads"))
    (whole, _), (layer, _) = (
        layer_memory(model, run_of(), table_of({"recompute": kind})) for kind in ("none", "modules")
    )
    assert float(whole[0] - layer[0]) == pytest.approx(4096 * dropped)
