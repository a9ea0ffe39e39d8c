"""Seconds of decode and prefill for a layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.homes.models import Cell, model_of
from situate.data.cluster import Cluster, Device, Link
from situate.language.cache import CacheOptions
from situate.language.home import Home, home_of
from situate.language.layer_seconds import Timetable, layer_seconds
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel
from situate.language.speed import decode_seconds, phase_parts, prefill_seconds

OPTIONS = CacheOptions(32768)


def model_named(name: str, quant: str) -> LanguageModel:
    result = model_of(Cell(name, quant, {}))
    assert result is not None
    return result


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return model_named("Qwen3 30B", "Q4_K_M")


@pytest.fixture(scope="module")
def home() -> Home:
    cpu = Device("cpu", kind="cpu", bandwidth=80e9, threads=12)
    cards = [Device("a", model="RTX 3090"), Device("b", model="RTX 3090")]
    return home_of(Cluster("mine", (*cards, cpu), (Link("*", "*", 25e9, 1e-5),)))


def times_of(model: LanguageModel, home: Home) -> Timetable:
    return Timetable(model, home, OPTIONS)


def layout(model: LanguageModel, cut: int, experts: int | None = None) -> Layout:
    n = model.sizes.layers
    layers = (0,) * cut + (1,) * (n - cut)
    order = (0, 1) if cut < n else (0,)
    return Layout(order, layers, layers if experts is None else (experts,) * n, layers[-1])


# The published speed of a dense model wholly on one card: 25 ms a token on an RTX 3090 Ti.
def test_a_dense_model_decodes_near_the_bandwidth_of_its_card() -> None:
    dense = model_named("GLM Z1 32B", "IQ4_XS")
    cpu = Device("cpu", kind="cpu", bandwidth=80e9, threads=16)
    card = Device("gpu", model="RTX 3090 Ti")
    home = home_of(Cluster("mine", (card, cpu), (Link("*", "*", 25e9),)))
    place = layout(dense, dense.sizes.layers)
    assert 1 / decode_seconds(times_of(dense, home), place, 0) == pytest.approx(38.3, rel=0.15)
    prefill = 512 / prefill_seconds(times_of(dense, home), place, 512)
    assert prefill == pytest.approx(1366, rel=0.3)


# A split by layer takes turns: it neither saves nor costs but for the crossing.
def test_decode_is_the_sum_of_layers_crossings_and_output(model: LanguageModel, home: Home) -> None:
    place = layout(model, 20)
    t = layer_seconds(model, home, OPTIONS, 1, 1000)
    total = t.whole[:20, 0].sum() + t.whole[20:, 1].sum() + t.output[1]
    total += t.crossing[HOST, 0] + t.crossing[0, 1]
    assert decode_seconds(times_of(model, home), place, 1000) == pytest.approx(total)


def test_arrays_have_a_column_a_device_with_the_host_last(model: LanguageModel, home: Home) -> None:
    t = layer_seconds(model, home, OPTIONS, 512, 0)
    n = model.sizes.layers
    for part in (t.dense, t.attention, t.experts, t.dense_upload, t.expert_upload):
        assert part.shape == (n, 3)
    assert np.isinf(t.expert_upload[:, HOST]).all()
    assert (t.expert_upload[:, 0] > t.experts[:, 0]).all()
    assert (np.diag(t.crossing) == 0).all()


def test_experts_in_host_memory_decode_slower_and_cross(model: LanguageModel, home: Home) -> None:
    n = model.sizes.layers
    near, far = layout(model, n), layout(model, n, HOST)
    assert decode_seconds(times_of(model, home), far, 0) > 1.5 * decode_seconds(
        times_of(model, home), near, 0
    )
    assert phase_parts(times_of(model, home), near, 1, 0)["host weights"] == 0
    assert phase_parts(times_of(model, home), far, 1, 0)["host weights"] > 0


def test_long_batches_upload_experts_only_with_op_offload(model: LanguageModel, home: Home) -> None:
    away = layout(model, model.sizes.layers, HOST)
    stay = replace(away, op_offload=False)
    assert phase_parts(times_of(model, home), away, 512, 0)["upload"] > 0
    assert phase_parts(times_of(model, home), stay, 512, 0)["upload"] == 0
    assert phase_parts(times_of(model, home), away, 16, 0)["upload"] == 0
    assert phase_parts(times_of(model, home), stay, 512, 0)["host weights"] > 0


def test_longer_ubatches_share_an_upload(model: LanguageModel, home: Home) -> None:
    away = layout(model, model.sizes.layers, HOST)
    short = prefill_seconds(times_of(model, home), away, 4096)
    long = prefill_seconds(times_of(model, home), replace(away, ubatch=4096), 4096)
    assert long < 0.6 * short


def test_depth_costs(model: LanguageModel, home: Home) -> None:
    place = layout(model, 20)
    times = [decode_seconds(times_of(model, home), place, d) for d in (0, 8192, 32000)]
    assert times == sorted(set(times))
    host = replace(place, host_cache=True)
    assert decode_seconds(times_of(model, home), host, 8192) > times[1]


def test_a_split_of_tensors_reads_in_parallel(model: LanguageModel, home: Home) -> None:
    turns, together = layout(model, 20), replace(layout(model, 20), split="tensor")
    weights = [
        phase_parts(times_of(model, home), place, 1, 0)["accelerator weights"]
        for place in (turns, together)
    ]
    assert weights[1] == pytest.approx(weights[0] / 2, rel=0.2)


def test_a_pipeline_of_ubatches_overlaps_devices(model: LanguageModel, home: Home) -> None:
    place = layout(model, 24)
    one, ten = (prefill_seconds(times_of(model, home), place, 512 * k) for k in (1, 10))
    assert ten < 7.5 * one


# Experts by kind: all kinds away are whole experts away, and some of them are between.
@pytest.mark.parametrize("tokens", [1, 512])
@pytest.mark.parametrize("op_offload", [False, True])
def test_divided_experts_take_a_time_between_those_of_whole_ones(
    model: LanguageModel, home: Home, tokens: int, op_offload: bool
) -> None:
    times = times_of(model, home)
    n = model.sizes.layers
    inside = replace(layout(model, n), op_offload=op_offload)
    whole = replace(inside, experts=(0,) * 9 + (HOST,) + (0,) * (n - 10))
    parts = [f"blk.9.ffn_{kind}_exps.weight" for kind in ("gate", "up", "down")]

    def seconds(place: Layout) -> float:
        return sum(phase_parts(times, place, tokens, 0).values())

    every = replace(inside, moved=tuple((name, HOST) for name in parts))
    assert seconds(every) == pytest.approx(seconds(whole))
    some = [seconds(replace(inside, moved=((name, HOST),))) for name in parts]
    assert all(seconds(inside) < one < seconds(whole) for one in some)
