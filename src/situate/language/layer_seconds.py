"""Seconds of each layer of a language model on each device of a home.

An op takes the longer of two times: its bytes over the effective bandwidth, and its operations
over the effective rate (the roofline, DOI 10.1145/1498765.1498785).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from situate.language.cache import CacheOptions
from situate.language.home import Home, Processor
from situate.language.hyperparameters import Hyperparameters
from situate.language.model import LanguageModel, Layer, Weight

TILE = 450.0
"""Tokens an expert at which a GPU reaches half of its rate."""

SHORT_BATCH = 8
"""Most tokens that llama.cpp multiplies one by one, as when it decodes (`MMVQ_MAX_BATCH_SIZE`)."""

DECODE_ATTENTION = 0.4
"""Share of its rates in long batches that attention reaches when it decodes."""

Floats = NDArray[np.float64]

BY_LAYER = ("dense", "attention", "experts", "dense_upload", "expert_upload")
"""Tables of `LayerSeconds` with one row a layer."""


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

    @cached_property
    def weight_sums(self) -> Floats:
        """(devices,) the weights of all layers on one device."""
        sums: Floats = (self.dense + self.experts).sum(axis=0)
        return sums

    @cached_property
    def attention_sums(self) -> Floats:
        """(devices,) the attention of all layers on one device."""
        sums: Floats = self.attention.sum(axis=0)
        return sums


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
    # The host is the last device: (devices,) its links to each.
    links = np.array(home.bandwidth)[-1]
    dense_bytes = np.array([_size(layer, False) for layer in model.layers])
    expert_bytes = np.array(
        [_size(layer, True) * read_share(layer, ubatch) for layer in model.layers]
    )
    matrices = model.embedding if model.tied else ()
    output = sum(w.size for w in (*model.output, *matrices))
    # The host's link to itself is infinite, and 0 bytes by an absent link are no number.
    with np.errstate(invalid="ignore"):
        uploads = [size[:, None] / (home.upload * links) for size in (dense_bytes, expert_bytes)]
    for upload in uploads:
        upload[:, -1] = np.inf
    # The residual stream is in float32.
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


def read_share(layer: Layer, ubatch: int) -> float:
    """Share of a layer's experts that a ubatch reads, if routing is uniform."""
    e = layer.experts
    # A token misses an expert with probability 1 - used / count.
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
    weights = [w for w in layer.weights if w.role == "experts"]
    return device.launch + expert_seconds(weights, layer, device, ubatch)


def expert_seconds(
    weights: Sequence[Weight], layer: Layer, device: Processor, ubatch: int
) -> float:
    """Seconds of some tensors of a layer's experts on a device, without the constant of a layer."""
    e = layer.experts
    assert e is not None
    tokens, share = ubatch * e.used / e.count, read_share(layer, ubatch)
    # A batch of few tokens an expert fills only a part of a matrix unit's tile.
    fill = tokens / (tokens + TILE) if device.cores == 0 and ubatch > SHORT_BATCH else 1.0
    return sum(_weight_seconds(w, device, tokens / fill, share) for w in weights)


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
    cells = attended_cells(layer, ubatch, depth)
    reading = cell_bytes(layer, options) * cells / device.bandwidth
    operations, heads = cell_operations(sizes, layer, options, ubatch)
    # Rows of a product: the queries that share keys.
    rows = heads * ubatch
    fill = min((rows / 128) ** 0.6, 1.0) if device.cores == 0 else 1.0
    seconds = max(reading, operations * cells / (device.attention * fill))
    return seconds / DECODE_ATTENTION if ubatch <= SHORT_BATCH else seconds


def attended_cells(layer: Layer, ubatch: int, depth: int) -> int:
    """Cached tokens that the attention of a ubatch reads."""
    cells, window = depth + ubatch, layer.cache.window
    return min(cells, window + ubatch) if window else cells


def cell_bytes(layer: Layer, options: CacheOptions) -> float:
    """Bytes of keys and values of one cached token."""
    # A cache of 256 cells, so that types of blocks have whole ones.
    one = replace(options, context=256, slots=1, unified=True, full_window=True)
    return layer.cache.bytes(one) / 256


def cell_operations(
    sizes: Hyperparameters, layer: Layer, options: CacheOptions, ubatch: int
) -> tuple[float, int]:
    """Operations of a ubatch for each cached token, and the query heads that share keys."""
    cache, heads = layer.cache, sizes.heads[layer.number]
    if cache.attention == "latent" and options.latent:
        # Queries and results have the width of the cached vector: two products of 2 operations.
        rank = cache.latent_width
        return 4.0 * heads * rank * ubatch, heads
    groups = max(sizes.kv_heads[layer.number], 1)
    width = (cache.key_width + cache.value_width) / groups
    return 2.0 * heads * width * ubatch, max(heads // groups, 1)


class Timetable:
    """Seconds of a model's layers on a home, for any pass; each pass is computed once.

    Layers with equal tensors take equal times, so one of each kind is computed.
    """

    def __init__(self, model: LanguageModel, home: Home, options: CacheOptions) -> None:
        self.model, self.home, self.options = model, home, options
        self._kinds = layer_kinds(model)
        self._passes: dict[tuple[int, int], LayerSeconds] = {}

    def seconds(self, ubatch: int, depth: int) -> LayerSeconds:
        """Seconds of a pass, as `layer_seconds` has them."""
        key = ubatch, depth
        if key not in self._passes:
            heads = sorted(set(self._kinds))
            # `heads` is sorted, so each layer's row is the place of its first like.
            rows = np.searchsorted(heads, self._kinds)
            layers = tuple(self.model.layers[i] for i in heads)
            one_of_each = replace(self.model, layers=layers)
            t = layer_seconds(one_of_each, self.home, self.options, ubatch, depth)
            self._passes[key] = replace(t, **{name: getattr(t, name)[rows] for name in BY_LAYER})
        return self._passes[key]


def layer_kinds(model: LanguageModel) -> list[int]:
    """(layers,) the first layer that each one is like, in its tensors and its cache."""
    first: dict[object, int] = {}
    sizes = model.sizes
    return [
        first.setdefault(
            (
                tuple(sorted((w.name.split(f".{i}.", 1)[-1], *w[1:5]) for w in layer.weights)),
                layer.cache,
                layer.experts,
                sizes.heads[layer.number],
                sizes.kv_heads[layer.number],
            ),
            i,
        )
        for i, layer in enumerate(model.layers)
    ]
