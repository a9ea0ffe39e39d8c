"""Compute buffers against the real llama.cpp: `buffers.json` holds the reports of its dry run.

Each row is a model, a layout of `benchmarks.homes.llamacpp.layouts`, and MiB of each GPU in use
and of the host.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.homes.llamacpp.layouts import cases
from situate.language.activations.replay import can_replay, replayed_peaks
from situate.language.cache import CacheOptions
from situate.language.compute_buffers import Build
from situate.language.layout import HOST, Layout
from situate.language.memory import device_memory, is_pipelined
from tests.language.activations.models import model, options

MIB = 2**20
ROWS = json.loads((Path(__file__).parent / "buffers.json").read_text())


@pytest.mark.parametrize("name", dict.fromkeys(row[0] for row in ROWS))
def test_buffers_are_those_of_llama_cpp(name: str) -> None:
    network = model(name)
    layouts = {title: (layout, cache) for title, layout, cache in cases(network)}
    for _, title, reported in (row for row in ROWS if row[0] == name):
        layout, cache = layouts[title]
        layout = replace(layout, op_offload=False)
        build = Build(pipeline=is_pipelined(layout), outputs=cache.slots, dry=True, converts=False)
        parts = device_memory(network, layout, cache, 3, build=build)
        sizes = [parts[device].compute / MIB for device in (*layout.order, -1)]
        assert sizes == pytest.approx(reported, abs=0.1), title


# What the layout and the options change.
def test_a_real_run_normalises_where_layers_lie() -> None:
    network = model("llama")
    count = len(network.layers)
    halves = tuple(i * 2 // count for i in range(count))
    layout = Layout((0, 1), halves, halves, 1)
    peaks = [
        replayed_peaks(network, layout, options(CacheOptions(4096), 2, enforced=enforced), True)
        for enforced in (True, False)
    ]
    stream = 4 * network.sizes.width * 512
    assert peaks[1][1] - peaks[0][1] == 4 * stream
    assert peaks[1][0] == peaks[0][0]


def test_uploads_need_room_for_the_largest_matrix_of_the_host() -> None:
    network = model("Qwen3 30B-A3B")
    count = len(network.layers)
    away = Layout((0,), (0,) * count, (HOST,) * count, 0)
    offloaded, plain = (
        replayed_peaks(network, replace(away, op_offload=on), options(CacheOptions(4096)), False)
        for on in (True, False)
    )
    largest = max(w.size for layer in network.layers for w in layer.weights if w.role == "experts")
    assert offloaded[0] >= largest
    assert plain[0] < largest / 2
    assert plain[1] > offloaded[1]


def test_single_tensors_may_lie_elsewhere() -> None:
    network = model("qwen3moe")
    count = len(network.layers)
    layout = Layout((0,), (0,) * count, (0,) * count, 0, op_offload=False)
    down = tuple((f"blk.{i}.ffn_down_exps.weight", HOST) for i in range(count))
    cache = options(CacheOptions(4096))
    before = replayed_peaks(network, layout, cache, False)
    after = replayed_peaks(network, replace(layout, moved=down), cache, False)
    assert after[1] > before[1]
    assert after[0] < before[0]


def test_repeated_layers_change_nothing() -> None:
    network = model("DeepSeek R1")
    few = replace(network, layers=network.layers[:13])
    places = (0,) * 13
    cache = options(CacheOptions(4096))
    short = replayed_peaks(few, Layout((0,), places, places, 0), cache, False)
    places = (0,) * len(network.layers)
    assert replayed_peaks(network, Layout((0,), places, places, 0), cache, False) == short


# Graphs that are not replayed are estimated.
def test_some_graphs_are_not_known() -> None:
    network = model("llama")
    places = (0,) * len(network.layers)
    layout = Layout((0, 1), places, places, 0)
    assert can_replay(network, layout)
    assert not can_replay(network, replace(layout, split="tensor"))
    unknown = replace(network, sizes=replace(network.sizes, architecture="mamba2"))
    assert not can_replay(unknown, layout)
