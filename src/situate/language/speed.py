"""Seconds of a language model's phases for a layout on a home."""

from __future__ import annotations

import numpy as np

from situate.language.compute_buffers import F32
from situate.language.expert_kinds import divided_layers, expert_kind, expert_places
from situate.language.layer_seconds import (
    Floats,
    LayerSeconds,
    Timetable,
    expert_seconds,
    read_share,
)
from situate.language.layout import HOST, Layout
from situate.language.memory import OFFLOAD_BATCH, is_pipelined
from situate.language.model import Weight

DECODE_ERROR, PREFILL_ERROR = 0.11, 0.25
"""Median relative errors of tokens/s on published rigs (docs/homes.md)."""

PARTS = (
    *(
        f"{side} {kind}"
        for side in ("accelerator", "host")
        for kind in ("weights", "attention", "layers")
    ),
    "upload",
    "crossing",
)
"""Parts of a pass."""


def decode_seconds(times: Timetable, layout: Layout, depth: int, tokens: int = 1) -> float:
    """Seconds of one token at a depth; their documented error is `DECODE_ERROR`.

    With several tokens, those of the pass that checks guesses.
    """
    return sum(phase_parts(times, layout, tokens, depth).values())


def prefill_seconds(times: Timetable, layout: Layout, tokens: int, depth: int = 0) -> float:
    """Seconds of a prompt of so many tokens; their documented error is `PREFILL_ERROR`.

    Attention is linear in depth, so all ubatches are counted at the mean depth. With pipeline
    parallelism a ubatch starts when the one before has left the slowest device.
    """
    full, rest = divmod(tokens, layout.ubatch)
    mean = depth + max(tokens - layout.ubatch, 0) // 2
    seconds = 0.0
    if full:
        one = sum(phase_parts(times, layout, layout.ubatch, mean).values())
        seconds = full * one
        if full > 1 and is_pipelined(layout):
            # Each ubatch but the first adds the time of the slowest device.
            stage = _slowest_stage(layout, times.seconds(layout.ubatch, mean))
            seconds = one + (full - 1) * stage
    if rest:
        seconds += sum(phase_parts(times, layout, rest, mean).values())
    return seconds


def _slowest_stage(layout: Layout, t: LayerSeconds) -> float:
    stages = np.zeros(t.output.size)
    places = np.array(layout.layers)
    np.add.at(stages, places, t.whole[np.arange(len(places)), places])
    stages[layout.output] += t.output[layout.output]
    return float(stages.max())


def phase_parts(times: Timetable, layout: Layout, ubatch: int, depth: int) -> dict[str, float]:
    """Seconds of one pass of a ubatch, by the part of the machine that is busy.

    Keys: `accelerator weights`, `accelerator attention`, `accelerator layers` (constants), the
    same of `host`, `upload` and `crossing`. Devices take turns, so the pass is their sum.
    """
    t = times.seconds(ubatch, depth)
    parts = dict.fromkeys(PARTS, 0.0)
    if layout.split == "tensor":
        return _divided_parts(times, layout, t, parts)
    offload = layout.op_offload and ubatch >= OFFLOAD_BATCH and bool(layout.order)
    first = layout.order[0] if offload else HOST
    launch = np.array([device.launch for device in times.home.processors])
    places, experts = np.array(layout.layers), np.array(layout.experts)
    layers = np.arange(len(places))
    mixtures = np.array([layer.experts is not None for layer in times.model.layers])
    divided = divided_layers(layout) if layout.moved else []
    # Layers with divided experts are added one by one below.
    mixtures[divided] = False

    def add(kind: str, devices: np.typing.NDArray[np.int64], seconds: Floats) -> None:
        on_host = devices == HOST
        parts[f"host {kind}"] += float(seconds[on_host].sum())
        parts[f"accelerator {kind}"] += float(seconds[~on_host].sum())

    for compute, upload, homes, rows in (
        (t.dense, t.dense_upload, places, layers),
        (t.experts, t.expert_upload, experts, layers[mixtures]),
    ):
        home, visit = homes[rows], places[rows]
        workers = np.where(home == HOST, first, home)
        add("layers", workers, launch[workers])
        add("weights", workers, compute[rows, workers] - launch[workers])
        moved = workers != home
        # `upload` holds the computing too, which counts as weights.
        sent = rows[moved], workers[moved]
        parts["upload"] += float((upload[sent] - compute[sent]).sum())
        # No crossing where the worker is the layer's own device.
        visits = t.crossing[visit, workers] + t.crossing[workers, visit]
        parts["crossing"] += float(visits.sum())
    for number in divided:
        _add_divided_experts(times, layout, number, ubatch, first, parts)
    caches = np.full_like(places, HOST) if layout.host_cache else places
    add("attention", caches, t.attention[layers, caches])
    route = np.array([HOST, *layout.layers, layout.output])
    parts["crossing"] += float(t.crossing[route[:-1], route[1:]].sum())
    add("weights", route[-1:], t.output[route[-1:]])
    return parts


def _add_divided_experts(
    times: Timetable,
    layout: Layout,
    number: int,
    ubatch: int,
    first: int,
    parts: dict[str, float],
) -> None:
    """Add a layer whose kinds of experts lie on several devices.

    The input goes to each device with a matrix into hidden units, the hidden units to the matrix
    out of them, and the output back to the layer.

    Args:
        times: with the model and the home.
        layout: where everything is.
        number: of the layer.
        ubatch: tokens that pass at once.
        first: the GPU that computes with the host's weights, or `HOST`.
        parts: seconds by part.
    """
    home, layer, trunk = times.home, times.model.layers[number], layout.layers[number]
    e = layer.experts
    assert e is not None
    share, down = read_share(layer, ubatch), trunk
    weights: dict[int, list[Weight]] = {}
    inputs: set[int] = set()
    for weight, place in expert_places(times.model, layout, number):
        worker = first if place == HOST else place
        weights.setdefault(worker, []).append(weight)
        if worker != place:
            speed = home.upload * home.bandwidth[HOST][worker]
            parts["upload"] += weight.size * share / speed
        if expert_kind(weight.name) == "down":
            down = worker
        else:
            inputs.add(worker)
    for worker, members in weights.items():
        device, side = home.processors[worker], "host" if worker == HOST else "accelerator"
        parts[f"{side} layers"] += device.launch
        parts[f"{side} weights"] += expert_seconds(members, layer, device, ubatch)
    stream, hidden = (F32 * ubatch * n for n in (times.model.sizes.width, e.used * e.width))
    trips = [
        *((trunk, worker, stream) for worker in inputs),
        *((worker, down, hidden) for worker in inputs),
        (down, trunk, stream),
    ]
    for a, b, size in trips:
        if a != b:
            parts["crossing"] += home.latency[a][b] + size / home.bandwidth[a][b]


def _divided_parts(
    times: Timetable, layout: Layout, t: LayerSeconds, parts: dict[str, float]
) -> dict[str, float]:
    """Every matrix is divided evenly: the slowest GPU counts, with two reductions a layer."""
    order, n = list(layout.order), len(layout.order)
    layers = times.model.layers
    ops = len(layers) + sum(layer.experts is not None for layer in layers)
    constants = np.array([ops * times.home.processors[d].launch for d in order])
    weights = t.weight_sums[order] - constants + t.output[order]
    parts["accelerator weights"] = float(weights.max() / n)
    parts["accelerator layers"] = float(constants.max())
    parts["accelerator attention"] = float(t.attention_sums[order].max() / n)
    pairs = t.crossing[np.ix_(order, order)]
    parts["crossing"] = float(2 * len(layers) * pairs.max())
    return parts
