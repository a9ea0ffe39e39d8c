"""Seconds of a language model's phases for a layout on a home.

An op takes the longer of two times: its bytes over the effective bandwidth, and its operations
over the effective rate (the roofline, DOI 10.1145/1498765.1498785).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from situate.language.cache import CacheOptions
from situate.language.home import Home, Processor
from situate.language.hyperparameters import Hyperparameters
from situate.language.layout import HOST, Layout
from situate.language.memory import OFFLOAD_BATCH, is_pipelined
from situate.language.model import LanguageModel, Layer, Weight

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

TILE = 450.0
"""Tokens an expert at which a GPU reaches half of its rate."""

DECODE_ATTENTION = 0.4
"""Share of its rates in long batches that attention reaches when it decodes."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LayerSeconds:
    """Seconds of the parts of each layer, for one pass of a ubatch. The host is the last device.

    A layer wholly on device d takes `dense + attention + experts` of d. Experts elsewhere cross
    there and back. With op offload and a long batch, weights in host memory are uploaded to the
    first GPU: `dense_upload` and `expert_upload` are their seconds, computing included.

    Attributes:
        dense: (layers, devices) all weights but experts, and the constant of the layer.
        attention: (layers, devices) keys and values, where the cache is.
        experts: (layers, devices) weights of the experts that the ubatch passes through.
        dense_upload, expert_upload: (layers, devices) infinite on the host.
        output: (devices,) the output matrix for one token of each sequence.
        crossing: (devices, devices) activations of the ubatch from device to device.
    """

    dense: Floats
    attention: Floats
    experts: Floats
    dense_upload: Floats
    expert_upload: Floats
    output: Floats
    crossing: Floats

    @property
    def whole(self) -> Floats:
        """(layers, devices) a layer wholly on one device."""
        return self.dense + self.attention + self.experts


def layer_seconds(
    model: LanguageModel, home: Home, options: CacheOptions, ubatch: int, depth: int
) -> LayerSeconds:
    """Seconds of each layer on each device.

    Args:
        model: its tensors.
        home: the devices.
        options: types of the cache.
        ubatch: tokens that pass at once; 1 for decode.
        depth: tokens in the cache before them.
    """
    devices = home.processors
    dense = np.array([[_dense(layer, d, ubatch) for d in devices] for layer in model.layers])
    attention = np.array(
        [
            [_attention(model.sizes, layer, d, options, ubatch, depth) for d in devices]
            for layer in model.layers
        ]
    )
    experts = np.array([[_experts(layer, d, ubatch) for d in devices] for layer in model.layers])
    links = np.array(home.bandwidth)[-1]
    dense_bytes = np.array([_size(layer, False) for layer in model.layers])
    expert_bytes = np.array(
        [_size(layer, True) * _read_share(layer, ubatch) for layer in model.layers]
    )
    matrices = model.embedding if model.tied else ()
    output = sum(w.size for w in (*model.output, *matrices))
    with np.errstate(invalid="ignore"):
        uploads = [size[:, None] / (home.upload * links) for size in (dense_bytes, expert_bytes)]
    for upload in uploads:
        upload[:, -1] = np.inf
    bytes_moved = 4 * model.sizes.width * ubatch
    crossing = np.array(home.latency) + bytes_moved / np.array(home.bandwidth)
    np.fill_diagonal(crossing, 0)
    return LayerSeconds(
        dense,
        attention,
        experts,
        uploads[0] + dense,
        uploads[1] + experts,
        np.array([output / device.bandwidth for device in devices]),
        crossing,
    )


def _size(layer: Layer, experts: bool) -> float:
    return sum(w.size for w in layer.weights if (w.role == "experts") == experts)


def _read_share(layer: Layer, ubatch: int) -> float:
    """Share of a layer's experts that a ubatch reads, if routing is uniform."""
    e = layer.experts
    return 1.0 if e is None else 1 - (1 - e.used / e.count) ** ubatch


def _weight_seconds(weight: Weight, device: Processor, tokens: float, share: float = 1.0) -> float:
    """Seconds of a matrix: the roofline of its bytes and operations.

    Args:
        weight: the matrix, or those of all experts.
        device: where it is.
        tokens: that pass through each of its rows, in the mean.
        share: of its bytes that are read.
    """
    speed = device.shares.get(weight.type.name, 1.0)
    reading = weight.size * share / (device.bandwidth * speed)
    return max(reading, 2 * weight.elements * tokens / device.flops)


def _dense(layer: Layer, device: Processor, ubatch: int) -> float:
    weights = (w for w in layer.weights if w.role != "experts")
    return device.launch + sum(_weight_seconds(w, device, ubatch) for w in weights)


def _experts(layer: Layer, device: Processor, ubatch: int) -> float:
    e = layer.experts
    if e is None:
        return 0.0
    weights = (w for w in layer.weights if w.role == "experts")
    tokens, share = ubatch * e.used / e.count, _read_share(layer, ubatch)
    # A batch of few tokens an expert fills only a part of a matrix unit's tile.
    fill = tokens / (tokens + TILE) if device.cores == 0 and ubatch > 1 else 1.0
    return device.launch + sum(_weight_seconds(w, device, tokens / fill, share) for w in weights)


def _attention(
    sizes: Hyperparameters,
    layer: Layer,
    device: Processor,
    options: CacheOptions,
    ubatch: int,
    depth: int,
) -> float:
    """Seconds of attention: the roofline of the cache's bytes and the operations of all heads.

    Decoding multiplies one query a head. Matrix units are filled by the queries that share their
    keys, so that their rate grows with the heads of a group.
    """
    cache = layer.cache
    if cache.attention == "none":
        return 0.0
    cells = depth + ubatch
    if cache.window:
        cells = min(cells, cache.window + ubatch)
    reading = _cell_bytes(layer, options) * cells / device.bandwidth
    operations, heads = _cell_operations(sizes, layer, options, ubatch)
    rows = heads * ubatch
    fill = min((rows / 128) ** 0.6, 1.0) if device.cores == 0 else 1.0
    seconds = max(reading, operations * cells / (device.attention * fill))
    return seconds / DECODE_ATTENTION if ubatch == 1 else seconds


def _cell_bytes(layer: Layer, options: CacheOptions) -> float:
    one = replace(options, context=256, slots=1, unified=True, full_window=True)
    return layer.cache.bytes(one) / 256


def _cell_operations(
    sizes: Hyperparameters, layer: Layer, options: CacheOptions, ubatch: int
) -> tuple[float, int]:
    """Operations of a ubatch for each cached token, and the query heads that share keys."""
    cache, heads = layer.cache, sizes.heads[layer.number]
    if cache.attention == "latent" and options.latent:
        rank = cache.latent_width
        return 4.0 * heads * rank * ubatch, heads
    groups = max(sizes.kv_heads[layer.number], 1)
    width = (cache.key_width + cache.value_width) / groups
    return 2.0 * heads * width * ubatch, max(heads // groups, 1)


def decode_seconds(
    model: LanguageModel, layout: Layout, home: Home, options: CacheOptions, depth: int
) -> float:
    """Seconds of one token at a depth; their documented error is `DECODE_ERROR`."""
    return sum(phase_parts(model, layout, home, options, 1, depth).values())


def prefill_seconds(
    model: LanguageModel,
    layout: Layout,
    home: Home,
    options: CacheOptions,
    tokens: int,
    depth: int = 0,
) -> float:
    """Seconds of a prompt of so many tokens; their documented error is `PREFILL_ERROR`.

    Attention is linear in depth, so all ubatches are counted at the mean depth. With pipeline
    parallelism a ubatch starts when the one before has left the slowest device.
    """
    full, rest = divmod(tokens, layout.ubatch)
    mean = depth + max(tokens - layout.ubatch, 0) // 2
    seconds = 0.0
    if full:
        one = sum(phase_parts(model, layout, home, options, layout.ubatch, mean).values())
        seconds = full * one
        if full > 1 and is_pipelined(layout):
            t = layer_seconds(model, home, options, layout.ubatch, mean)
            seconds = one + (full - 1) * _slowest_stage(layout, t)
    if rest:
        seconds += sum(phase_parts(model, layout, home, options, rest, mean).values())
    return seconds


def _slowest_stage(layout: Layout, t: LayerSeconds) -> float:
    stages = np.zeros(t.output.size)
    for i, device in enumerate(layout.layers):
        stages[device] += t.whole[i, device]
    stages[layout.output] += t.output[layout.output]
    return float(stages.max())


def phase_parts(
    model: LanguageModel,
    layout: Layout,
    home: Home,
    options: CacheOptions,
    ubatch: int,
    depth: int,
) -> dict[str, float]:
    """Seconds of one pass of a ubatch, by the part of the machine that is busy.

    Keys: `accelerator weights`, `accelerator attention`, `accelerator layers` (constants), the
    same of `host`, `upload` and `crossing`. Devices take turns, so the pass is their sum.
    """
    t = layer_seconds(model, home, options, ubatch, depth)
    parts = dict.fromkeys(PARTS, 0.0)
    if layout.split == "tensor":
        return _divided_parts(model, layout, home, t, parts)
    offload = layout.op_offload and ubatch >= OFFLOAD_BATCH and bool(layout.order)
    first, place = layout.order[0] if offload else HOST, HOST

    def add(kind: str, device: int, seconds: float) -> None:
        parts[f"{'host' if device == HOST else 'accelerator'} {kind}"] += float(seconds)

    def add_weights(compute: Floats, upload: Floats, device: int, visit: int) -> None:
        worker = first if offload and device == HOST else device
        constant = home.processors[worker].launch
        add("layers", worker, constant)
        add("weights", worker, compute[worker] - constant)
        if worker != device:
            parts["upload"] += float(upload[worker] - compute[worker])
        parts["crossing"] += float(t.crossing[visit, worker] + t.crossing[worker, visit])

    for i, (device, expert_device) in enumerate(zip(layout.layers, layout.experts, strict=True)):
        parts["crossing"] += float(t.crossing[place, device])
        place = device
        add_weights(t.dense[i], t.dense_upload[i], device, device)
        cached = HOST if layout.host_cache else device
        add("attention", cached, t.attention[i, cached])
        if model.layers[i].experts is not None:
            add_weights(t.experts[i], t.expert_upload[i], expert_device, device)
    parts["crossing"] += float(t.crossing[place, layout.output])
    add("weights", layout.output, t.output[layout.output])
    return parts


def _divided_parts(
    model: LanguageModel,
    layout: Layout,
    home: Home,
    t: LayerSeconds,
    parts: dict[str, float],
) -> dict[str, float]:
    """Every matrix is divided evenly: the slowest GPU counts, with two reductions a layer."""
    order, n = list(layout.order), len(layout.order)
    ops = len(model.layers) + sum(layer.experts is not None for layer in model.layers)
    constants = np.array([ops * home.processors[d].launch for d in order])
    weights = (t.dense + t.experts)[:, order].sum(0) - constants + t.output[order]
    parts["accelerator weights"] = float(weights.max() / n)
    parts["accelerator layers"] = float(constants.max())
    parts["accelerator attention"] = float(t.attention[:, order].sum(0).max() / n)
    pairs = t.crossing[np.ix_(order, order)]
    parts["crossing"] = float(2 * len(model.layers) * pairs.max())
    return parts
