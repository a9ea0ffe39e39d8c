"""Bytes that llama.cpp takes on each device for a layout: weights, cache, compute buffers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from situate.language.activations.blocks import PassOptions
from situate.language.activations.replay import can_replay, replayed_peaks
from situate.language.cache import PAD, CacheOptions
from situate.language.compute_buffers import (
    F32,
    Build,
    Contents,
    accelerator_peak,
    host_peak,
)
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel

OFFLOAD_BATCH = 32
"""Shortest batch for which llama.cpp computes with the host's weights on a GPU
(`GGML_OP_OFFLOAD_MIN_BATCH`)."""

MARGIN_SHARE, MARGIN_BYTES = 0.1, 48 * 2**20
"""Margin of compute buffers: 95 of 100 published ones are below the prediction with it."""


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes on one device.

    Attributes:
        weights: tensors of the model.
        cache: keys and values, and recurrent states.
        compute: activations, masks, logits and uploaded weights.
        output: logits that the program reads (host only).
        context: that the driver takes beside all buffers.
        margin: by which the compute buffer may be larger, in 95 of 100 runs of any build.
        per_token: growth of the cache and of the mask with a token of context.
    """

    weights: int
    cache: int
    compute: int
    output: int
    context: int
    margin: int
    per_token: float

    @property
    def total(self) -> int:
        """Bytes of all parts, without the margin."""
        return self.weights + self.cache + self.compute + self.output + self.context


def device_memory(
    model: LanguageModel,
    layout: Layout,
    options: CacheOptions,
    gpus: int,
    context: int = 0,
    build: Build | None = None,
    exact: bool = True,
    growth: bool = True,
) -> tuple[DeviceMemory, ...]:
    """The memory of each GPU and, last, of the host.

    The layout's ubatch counts, and not that of the options.

    Args:
        model: its tensors.
        layout: where they lie.
        options: context, types of the cache, slots.
        gpus: number of GPUs of the home, in use or not.
        context: bytes that the driver takes on a GPU in use.
        build: of the engine. By default llama-server with flash attention, which reserves logits
            of one token a slot; margins are for builds that reserve them for every token.
        exact: False for compute buffers by rules, which depend on the kinds of layers on a device.
        growth: False to leave `per_token` at 0.
    """
    options = replace(options, ubatch=min(layout.ubatch, options.context))
    pipeline = is_pipelined(layout)
    weights, cache = _weights(model, layout, gpus), _caches(model, layout, options, gpus)
    estimate = _estimated(model, layout, options, gpus, build or Build(pipeline=pipeline))
    margins = [round(MARGIN_SHARE * e) + (MARGIN_BYTES if e else 0) for e in estimate]
    compute, slopes = estimate, [0.0] * (gpus + 1)
    if exact:
        build = build or Build(pipeline=pipeline, outputs=options.slots)
        compute = _compute(model, layout, options, gpus, build)
        # Buffers and margin keep their sum, so a layout that fits exactly fits by rules too.
        margins = [max(e + m - c, 0) for e, m, c in zip(estimate, margins, compute, strict=True)]
        if growth:
            # A cache holds a multiple of 256 tokens.
            step = PAD * options.slots
            longer = replace(options, context=options.context + step)
            sizes = _compute(model, layout, longer, gpus, build)
            grown = (_caches(model, layout, longer, gpus), sizes)
            slopes = [
                (c + d - a - b) / step for a, b, c, d in zip(cache, compute, *grown, strict=True)
            ]
    output = F32 * model.sizes.vocabulary * options.slots
    return tuple(
        DeviceMemory(
            weights[d],
            cache[d],
            compute[d],
            output if d == gpus else 0,
            context if d in layout.order else 0,
            margins[d],
            slopes[d],
        )
        for d in range(gpus + 1)
    )


def is_pipelined(layout: Layout) -> bool:
    """True if llama.cpp has several ubatches under way: all layers whole on several GPUs."""
    return (
        layout.experts == layout.layers
        and not layout.moved
        and HOST not in (*layout.layers, layout.output)
        and len(layout.order) > 1
        and layout.split == "layer"
        and not layout.host_cache
        and layout.output == layout.split_output
    )


def _weights(model: LanguageModel, layout: Layout, gpus: int) -> list[int]:
    sums, moved = [0] * (gpus + 1), dict(layout.moved)
    for layer, place, expert_place in zip(model.layers, layout.layers, layout.experts, strict=True):
        for weight in layer.weights:
            home = expert_place if weight.role == "experts" else place
            _add(sums, layout, moved.get(weight.name, home), weight.size)
    for weight in model.embedding:
        _add(sums, layout, moved.get(weight.name, HOST), weight.size)
        if model.tied and layout.output != HOST:
            _add(sums, layout, layout.output, weight.size)
    for weight in model.output:
        _add(sums, layout, moved.get(weight.name, layout.output), weight.size)
    return sums


def _caches(model: LanguageModel, layout: Layout, options: CacheOptions, gpus: int) -> list[int]:
    sums = [0] * (gpus + 1)
    for layer, place in zip(model.layers, layout.layers, strict=True):
        size = layer.cache.bytes(options) + layer.cache.state_bytes(options.slots)
        _add(sums, layout, HOST if layout.host_cache else place, size)
    return sums


def _add(sums: list[int], layout: Layout, place: int, size: int) -> None:
    """Add bytes on a device, or with a split of tensors equal shares on all GPUs in use."""
    if layout.split == "tensor" and place != HOST:
        for device in layout.order:
            sums[device] += -(-size // len(layout.order))
    else:
        sums[place] += size


def _compute(
    model: LanguageModel, layout: Layout, options: CacheOptions, gpus: int, build: Build
) -> list[int]:
    if build.engine == "llama.cpp" and can_replay(model, layout):
        return _replayed(model, layout, options, gpus, build)
    return _estimated(model, layout, options, gpus, build)


def _replayed(
    model: LanguageModel, layout: Layout, options: CacheOptions, gpus: int, build: Build
) -> list[int]:
    """Compute buffers as llama.cpp reserves them, by a replay of its graph."""
    early = build.mask == F32
    settings = PassOptions(
        options,
        min(build.outputs or options.ubatch, options.ubatch),
        build.flash,
        early,
        layout.host_cache,
        build.converts and not early,
        not build.dry,
        len(layout.order),
    )
    sizes = [0] * (gpus + 1)
    peaks = replayed_peaks(model, layout, settings, build.pipeline)
    for device, peak in zip((*layout.order, gpus), peaks, strict=True):
        sizes[device] = peak
    return sizes


def _estimated(
    model: LanguageModel, layout: Layout, options: CacheOptions, gpus: int, build: Build
) -> list[int]:
    """Compute buffers by the largest moments of a graph that is not replayed."""
    sizes, head = model.sizes, layout.output
    uploading = _uploads(layout, options.ubatch)
    gate, down = _largest_uploads(model, layout) if uploading else (0, 0)
    first = layout.order[0] if layout.order else HOST
    matrix = max((w.size for w in (*model.output, *model.embedding)), default=0)
    homes = _expert_homes(model, layout)
    peaks = []
    for d in range(gpus):
        layers = [i for i, place in enumerate(layout.layers) if place == d]
        if d not in layout.order:
            peaks.append(0)
            continue
        spread = layout.split == "tensor"
        contents = Contents(
            attention=bool(layers) or spread,
            experts=any(d in there and model.layers[i].experts for i, there in enumerate(homes))
            or (spread and sizes.experts is not None),
            dense=any(model.layers[i].experts is None for i in layers) or spread,
            output=head == d or spread,
            gate=gate if d == first else 0,
            down=down if d == first else 0,
            head=matrix if uploading and d == first and head == HOST else 0,
            visitors=not uploading and any(homes[i] != {d} for i in layers),
        )
        peaks.append(accelerator_peak(sizes, options, contents, build))
    on_host = Contents(
        experts=not uploading
        and any(
            HOST in there and layer.experts
            for there, layer in zip(homes, model.layers, strict=True)
        )
    )
    return [*peaks, host_peak(sizes, options, on_host, build, bool(layout.order))]


def _expert_homes(model: LanguageModel, layout: Layout) -> list[set[int]]:
    """(layers,) the devices of each layer's experts, or of the layer without any."""
    homes = [{place} for place in layout.experts]
    if layout.moved:
        moved = dict(layout.moved)
        for layer, there, place in zip(model.layers, homes, layout.experts, strict=True):
            if layer.experts:
                names = (w.name for w in layer.weights if w.role == "experts")
                there.update(moved.get(name, place) for name in names)
    return homes


def largest_upload(model: LanguageModel, layout: Layout) -> int:
    """Bytes of the largest matrix that the first GPU computes with from host memory, or 0."""
    return max(_largest_uploads(model, layout)) if _uploads(layout, layout.ubatch) else 0


def _uploads(layout: Layout, ubatch: int) -> bool:
    return layout.op_offload and bool(layout.order) and ubatch >= OFFLOAD_BATCH


def _largest_uploads(model: LanguageModel, layout: Layout) -> tuple[int, int]:
    """Bytes of the largest host matrix into hidden units, and of the largest one out of them."""
    moved = dict(layout.moved)
    host = [
        weight
        for layer, place, expert_place in zip(
            model.layers, layout.layers, layout.experts, strict=True
        )
        for weight in layer.weights
        if moved.get(weight.name, expert_place if weight.role == "experts" else place) == HOST
    ]
    return (
        max((weight.size for weight in host if "down" not in weight.name), default=0),
        max((weight.size for weight in host), default=0),
    )
