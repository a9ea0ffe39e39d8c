"""Kinds of experts' matrices (gate, up, down), of which each may lie on a device of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from situate.language.layout import Layout
from situate.language.model import LanguageModel, Layer, Weight, gguf_layer

KIND = re.compile(r"\.ffn_(gate_up|gate|up|down)_(?:ch)?exps\.")


@lru_cache(maxsize=2**15)
def expert_kind(name: str) -> str:
    """The kind of a tensor of experts by GGUF's name for it; empty for any other tensor."""
    match = KIND.search(name)
    return match[1] if match else ""


def kind_sizes(layer: Layer) -> Counter[str]:
    """Bytes of a layer's experts by kind, biases included."""
    sizes: Counter[str] = Counter()
    for weight in layer.weights:
        if weight.role == "experts":
            sizes[expert_kind(weight.name)] += weight.size
    return sizes


def divided_layers(layout: Layout) -> list[int]:
    """Layers of which some kinds of experts lie on another device than the rest."""
    numbers = {gguf_layer(name) for name, _ in layout.moved if expert_kind(name)}
    return sorted(number for number in numbers if number is not None)


def expert_places(
    model: LanguageModel, layout: Layout, number: int
) -> Iterator[tuple[Weight, int]]:
    """The tensors of a layer's experts, each with its device."""
    moved, place = dict(layout.moved), layout.experts[number]
    for weight in model.layers[number].weights:
        if weight.role == "experts":
            yield weight, moved.get(weight.name, place)


def with_kinds(
    model: LanguageModel, layout: Layout, number: int, kinds: frozenset[str], gpu: int, other: int
) -> Layout:
    """The layout with some kinds of a layer's experts on a GPU, and the rest on another device.

    The device of most of the bytes counts as that of the experts. Only tensors of experts are away
    from the rest of their part.
    """
    sizes = kind_sizes(model.layers[number])
    inside = sum(sizes[kind] for kind in kinds)
    place = gpu if 2 * inside > sizes.total() else other
    others = [(gguf_layer(name) or 0, (name, there)) for name, there in layout.moved]
    moved = [pair for layer, pair in others if layer < number]
    for weight in model.layers[number].weights:
        if weight.role == "experts":
            there = gpu if expert_kind(weight.name) in kinds else other
            moved += [(weight.name, there)] if there != place else []
    experts = (*layout.experts[:number], place, *layout.experts[number + 1 :])
    moved += [pair for layer, pair in others if layer > number]
    return replace(layout, experts=experts, moved=tuple(moved))
