"""Seconds of steps: how they change with each degree, and against a published run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from situate.language.training.layout import SCHEDULES, V
from situate.language.training.layout_text import parse_layout
from situate.language.training.machine import find_machine
from situate.language.training.seconds import (
    idle_rounds,
    raw_seconds,
    step_seconds,
    with_factors,
)
from situate.language.training.software import EXPERT_WAIT, PARTS
from tests.language.training.runs import GPT, LLAMA_8B, MIXTRAL, h100, run_of, table_of


def parts(model: Any = LLAMA_8B, recipe: str = "megatron", gpus: int = 8, **degrees: Any) -> Any:
    """Seconds by part of one layout."""
    values = step_seconds(model, run_of(recipe), h100(gpus), table_of(degrees))
    return {part: float(seconds[0]) for part, seconds in values.items()}


# Each degree has the effect that its literature states.
def test_all_parts_are_finite_and_not_negative():
    values = parts(MIXTRAL, dp=4, tp=2, ep=4, sp=True, zero=1)
    assert set(values) == set(PARTS)
    assert min(values.values()) >= 0


def test_recompute_repeats_the_forward_pass():
    none, full = (parts(dp=8, recompute=kind) for kind in ("none", "full"))
    assert full["matrices"] / none["matrices"] == pytest.approx(4 / 3)
    assert full["head"] == none["head"]
    assert full["attention"] / none["attention"] == pytest.approx(4.5 / 3.5)


def test_modules_repeat_passes_over_memory_and_no_products():
    none, modules, full = (
        parts(MIXTRAL, dp=8, ep=8, recompute=kind) for kind in ("none", "modules", "full")
    )
    assert none["memory"] < modules["memory"] < full["memory"]
    for part in ("matrices", "grouped", "attention", "experts"):
        assert modules[part] == none[part]


def test_modules_repeat_the_second_products_of_latent_attention():
    model = replace(MIXTRAL, latent=512)
    none, modules = (parts(model, dp=8, recompute=kind) for kind in ("none", "modules"))
    up = 1 - (512 + model.heads * model.value_head) * model.hidden / model.attention_weights
    assert modules["matrices"] / none["matrices"] == pytest.approx((3 + up) / 3)


def test_a_pipeline_adds_its_bubble():
    one, two = (parts(pp=4, count=count) for count in (1, 9))
    assert two["matrices"] / one["matrices"] == pytest.approx(12 / 4)


def test_stages_wait_for_the_head_while_micro_batches_follow_one_another():
    one, two = (parts(pp=4, count=count) for count in (1, 9))
    assert two["head"] == pytest.approx(9 * one["head"])


def test_a_predictor_takes_a_layer_and_a_head():
    plain, further = (parts(pp=4, count=4, mtp=mtp) for mtp in (0, 1))
    layer = (plain["matrices"] + plain["attention"] + plain["memory"]) / (7 * 8)
    assert further["head"] - 2 * plain["head"] == pytest.approx(4 * layer, rel=0.15)
    assert further["matrices"] == plain["matrices"]


def test_one_backward_pass_hides_gradients_and_a_chunk_those_of_other_chunks():
    few, many = (parts(gpus=64, dp=64, zero=1, count=count) for count in (1, 8))
    assert few["data"] == pytest.approx(many["data"])
    plain, chunks = (parts(gpus=512, dp=16, tp=8, pp=4, vp=v, zero=1, count=4) for v in (1, 8))
    assert 0 < chunks["data"] < plain["data"]


def test_interleaving_shortens_the_bubble():
    plain, interleaved = (parts(pp=4, vp=vp, count=4) for vp in (1, 4))
    assert interleaved["matrices"] / plain["matrices"] == pytest.approx((4 + 3 / 4) / 7)


def test_gradients_of_weights_fill_bubbles():
    """Without attention and passes over memory the bubble would be a third, as in the paper."""
    plain, late = (parts(pp=4, count=8, schedule=name) for name in SCHEDULES[:2])
    rounds = 8 * (late["matrices"] / plain["matrices"]) * (1 + 3 / 8)
    assert 1 < rounds - 8 < 3
    [idle] = idle_rounds(LLAMA_8B, run_of(), h100(), table_of({"pp": 4, "schedule": "zero-bubble"}))
    assert idle == pytest.approx(rounds - 8)


def test_later_schedules_wait_less():
    layouts = [{"pp": 4, "count": 8, "schedule": name} for name in SCHEDULES]
    layouts[V] |= {"vp": 2}
    idle = idle_rounds(LLAMA_8B, run_of(), h100(), table_of(*layouts)).tolist()
    assert idle == sorted(idle, reverse=True)
    assert idle[V] > 0


def test_a_pipeline_waits_for_its_other_stages():
    table = table_of({"pp": 4}, {"pp": 4, "vp": 3}, {"pp": 1})
    assert idle_rounds(LLAMA_8B, run_of(), h100(), table).tolist() == [3, 1, 0]


def test_tensor_parallelism_communicates_more_cheaply_inside_a_node():
    inside, outside = (parts(gpus=16, tp=tp, dp=16 // tp, sp=True) for tp in (8, 16))
    assert 0 < inside["tensor"] < outside["tensor"]


def test_context_parallelism_divides_attention():
    whole, divided = (parts(dp=8 // cp, cp=cp) for cp in (1, 4))
    assert divided["attention"] == pytest.approx(whole["attention"] / 4)
    assert divided["context"] > 0


def test_experts_communicate_if_they_are_divided():
    assert parts(MIXTRAL, "fsdp2", dp=8)["experts"] == 0
    assert parts(MIXTRAL, "fsdp2", dp=8, ep=8)["experts"] > 0


def test_an_all_to_all_waits_for_the_host_for_every_expert():
    alone = parts(MIXTRAL, dp=8)["experts"]
    assert alone == pytest.approx(MIXTRAL.layers * 8 * EXPERT_WAIT)
    assert 0 < parts(MIXTRAL, dp=8, ep=8)["experts"] < alone
    assert parts(dp=8)["experts"] == 0


def test_zero_3_gathers_for_each_micro_batch():
    once, twice = (parts(GPT, "fsdp2", dp=8, zero=3, count=count) for count in (1, 2))
    assert twice["data"] == pytest.approx(2 * once["data"])


def test_hybrid_sharding_gathers_inside_nodes():
    whole, hybrid = (
        parts(GPT, "fsdp2", gpus=64, dp=64, zero=3, shard=shard, count=8) for shard in (0, 8)
    )
    assert hybrid["data"] < whole["data"]


def test_offload_moves_the_update_to_the_host():
    device, host = (parts(recipe="deepspeed", dp=8, zero=2, offload=o) for o in (False, True))
    assert device["host"] == 0 < host["host"]
    assert host["update"] < device["update"]


def test_the_host_counts_if_the_gpu_waits_for_it():
    raw = raw_seconds(GPT, run_of(sequence=128), h100(1), table_of({}))
    values = with_factors(raw, {})
    assert 0 < values["launches"][0] < raw["launches"][0]
    assert with_factors(raw, {"launches": 0.0})["launches"][0] == 0


# torchtitan, 8 H100 of 500 W: 6,667 tokens/s for each GPU (benchmarks/llama3_h100_202412).
def test_the_host_launches_collectives_and_what_has_no_kernel():
    software = replace(run_of().recipe.software, attention="scores", softmax_launch=1e-3)
    run = replace(run_of(), recipe=replace(run_of().recipe, software=software))
    table = table_of({"tp": 4}, {"tp": 8}, {"tp": 32}, {})
    launches = raw_seconds(GPT, run, h100(32), table)["launches"] / GPT.layers
    # Eight heads: two matrices on four devices, one on eight, and four times as many on one.
    assert launches[0] == launches[1]
    plain = run_of().recipe.software
    layer = 3 * plain.layer_launch
    assert launches[3] == pytest.approx(layer)
    assert launches[0] == pytest.approx(layer + 4 * plain.collective_launch + 3e-3)


def test_a_published_run_is_within_its_error():
    machine = find_machine("8xH100-96GB")
    run = parse_layout("micro=2,seq=8192,recipe=fsdp2,recompute=selective", LLAMA_8B, 8)
    table = table_of({"dp": 8, "micro": 2, "zero": 3, "recompute": "selective"})
    seconds = sum(float(v[0]) for v in step_seconds(LLAMA_8B, run, machine, table).values())
    assert 2 * 8192 / seconds == pytest.approx(6667, rel=0.15)
