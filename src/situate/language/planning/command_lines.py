"""A layout as flags of llama.cpp."""

from __future__ import annotations

from collections.abc import Sequence

from situate.language.cache import CacheOptions
from situate.language.expert_kinds import expert_kind
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel, gguf_layer
from situate.language.planning.flags import DEFAULT_BATCH

OUTPUT, EMBEDDING = r"^output\.weight", r"^token_embd\.weight"
"""Patterns of the output's matrix, which in a tied model is the embedding."""


def flags(
    layout: Layout, options: CacheOptions, model: LanguageModel, devices: Sequence[str]
) -> list[str]:
    """A layout as flags of llama.cpp, which `flags.parse_flags` reads back.

    Args:
        layout: where everything is.
        options: of the cache.
        model: its layers.
        devices: (GPUs,) names in llama.cpp of the machine's GPUs, such as `CUDA0`.
    """
    return [
        *_devices(layout, devices),
        *_split(layout, model),
        *_divided_experts(layout, devices),
        *_experts(layout, model, devices),
        *_output(layout, model, devices),
        *_cache(layout, options),
        *(() if layout.op_offload else ("--no-op-offload",)),
    ]


def _devices(layout: Layout, devices: Sequence[str]) -> list[str]:
    if layout.order == tuple(range(len(devices))):
        return []
    return ["-dev", ",".join(devices[gpu] for gpu in layout.order) or "none"]


def _split(layout: Layout, model: LanguageModel) -> list[str]:
    """Layers are divided in proportion to `-ts`; integers of their sum give exact counts."""
    last = layout.split_output
    # llama.cpp counts layers for guesses at further tokens too, which it loads on request only.
    drafts = (last,) * model.sizes.draft_layers
    places = [device for device in (*layout.layers, *drafts, last) if device != HOST]
    words = ["-ngl", str(len(places))]
    if len(layout.order) > 1 and places:
        shares = [places.count(gpu) for gpu in layout.order]
        words += ["-ts", ",".join(map(str, shares))]
    if layout.split == "tensor":
        words += ["-sm", "tensor"]
    return words


def _output(layout: Layout, model: LanguageModel, devices: Sequence[str]) -> list[str]:
    if layout.output == layout.split_output:
        return []
    pattern = EMBEDDING if model.tied else OUTPUT
    return ["-ot", f"{pattern}={_buffer(layout.output, devices)}"]


def _divided_experts(layout: Layout, devices: Sequence[str]) -> list[str]:
    """Flags for single kinds of experts' matrices, which count before those for whole layers."""
    kinds: dict[tuple[int, int], list[str]] = {}
    for name, place in layout.moved:
        layer, kind = gguf_layer(name), expert_kind(name)
        if layer is not None and kind:
            kinds.setdefault((layer, place), []).append(kind)
    layers: dict[tuple[int, str], list[int]] = {}
    for (layer, place), members in kinds.items():
        layers.setdefault((place, "|".join(sorted(set(members)))), []).append(layer)
    words = []
    for (place, pattern), numbers in layers.items():
        group = "|".join(map(str, numbers))
        words += ["-ot", rf"blk\.({group})\.ffn_({pattern})_exps={_buffer(place, devices)}"]
    return words


def _experts(layout: Layout, model: LanguageModel, devices: Sequence[str]) -> list[str]:
    """Flags for experts away from their layers."""
    away: dict[int, list[int]] = {}
    mixtures = [i for i, layer in enumerate(model.layers) if layer.experts is not None]
    for i in mixtures:
        if layout.experts[i] != layout.layers[i]:
            away.setdefault(layout.experts[i], []).append(i)
    words: list[str] = []
    for device, numbers in away.items():
        leading = [i for i in mixtures if i <= numbers[-1]]
        resident = [i for i in leading if i not in numbers and layout.layers[i] != HOST]
        if device == HOST and not resident:
            everything = all(layout.experts[i] == HOST for i in mixtures)
            words += ["-cmoe"] if everything else ["-ncmoe", str(numbers[-1] + 1)]
        else:
            layers = "|".join(map(str, numbers))
            words += ["-ot", rf"blk\.({layers})\.ffn_.*_exps={_buffer(device, devices)}"]
    return words


def _cache(layout: Layout, options: CacheOptions) -> list[str]:
    words = ["-c", str(options.context), "-np", str(options.slots), "-ub", str(layout.ubatch)]
    if layout.ubatch > DEFAULT_BATCH:
        words += ["-b", str(layout.ubatch)]
    for flag, kind in (("-ctk", options.key_type), ("-ctv", options.value_type)):
        if kind != "F16":
            words += [flag, kind.lower()]
    switches = (
        ("-nkvo", layout.host_cache),
        ("-kvu", options.unified),
        ("--swa-full", options.full_window),
    )
    return words + [flag for flag, on in switches if on]


def _buffer(device: int, devices: Sequence[str]) -> str:
    return "CPU" if device == HOST else devices[device]
