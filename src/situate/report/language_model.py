"""The contents of a language model: parameters, bytes by type and role, experts, and its cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.language.model import LanguageModel, Weight
from situate.report.tables import table
from situate.report.text import plural, printable
from situate.report.units import count_text, size_text

PER = 1000
"""Tokens by which the growth of a cache is stated."""

SHOWN_CACHE_TYPES = ("F16", "Q8_0", "Q4_0")


def language_model_table(model: LanguageModel) -> RenderableType:
    """A summary of a language model for the terminal."""
    grid = Table.grid(padding=(0, 2))
    for label, value in _facts(model):
        grid.add_row(Text(label, "dim"), Text(value))
    title = Text(printable(model.name, 60), "bold")
    types = _shares(model, "type", lambda weight: weight.type.name)
    roles = _shares(model, "role", lambda weight: weight.role)
    return Group(title, grid, Text(), types, Text(), roles)


def _facts(model: LanguageModel) -> list[tuple[str, str]]:
    sizes = model.sizes
    name = f"{sizes.architecture}, {plural(sizes.layers, 'layer')} of width {sizes.width:,}"
    active = model.active_parameters
    part = f", of which a token uses {count_text(active)}" if active < model.parameters else ""
    facts = [
        ("architecture", name),
        ("source", _source(model)),
        ("parameters", count_text(model.parameters) + part),
        ("weights", f"{size_text(model.size)}, {_bits(model):.2f} bits a parameter"),
        ("vocabulary", f"{sizes.vocabulary:,} tokens{', tied' if model.tied else ''}"),
        *_experts(model),
        ("attention", _attention(model)),
        *_memory(model),
    ]
    if sizes.context:
        facts.append(("context", f"{sizes.context:,} tokens in training"))
    if model.draft:
        size = size_text(sum(weight.size for weight in model.draft))
        facts.append(("guessing layers", f"{size} more, loaded on request only"))
    return facts


def _bits(model: LanguageModel) -> float:
    """Bits of a parameter in the mean."""
    return 8 * model.size / model.parameters


def _source(model: LanguageModel) -> str:
    parts: list[str] = [model.source]
    if model.file_type is not None:
        parts.append(model.file_type)
    if model.source == "gguf" and not model.complete:
        parts.append("the header alone")
    if model.source == "config":
        parts.append("types by the rules of llama-quantize")
    return ", ".join(parts)


def _experts(model: LanguageModel) -> list[tuple[str, str]]:
    experts = model.sizes.experts
    if experts is None:
        return []
    layers = [layer for layer in model.layers if layer.experts is not None]
    size = sum(w.size for layer in layers for w in layer.weights if w.role == "experts")
    mean = size / max(len(layers) * experts.count, 1)
    shared = ", beside shared ones" if experts.shared_width else ""
    text = f"{experts.used} of {experts.count} for a token in {plural(len(layers), 'layer')}"
    return [("experts", f"{text}{shared}; {size_text(mean)} each")]


def _attention(model: LanguageModel) -> str:
    """The kinds of attention with the number of layers of each."""
    kinds = Counter(layer.cache.attention for layer in model.layers)
    states = sum(layer.cache.state > 0 for layer in model.layers)
    parts = [
        f"{kind} in {count}" if kind != "window" else f"{model.sizes.window:,} tokens in {count}"
        for kind, count in kinds.items()
        if kind != "none"
    ]
    if states:
        parts.append(f"recurrent in {states}")
    return ", ".join(parts)


def _memory(model: LanguageModel) -> list[tuple[str, str]]:
    facts = []
    growth = growth_by_type(model)
    if growth["F16"]:
        texts = (f"{size_text(value)} in {name.lower()}" for name, value in growth.items())
        facts.append(("cache", f"per {PER:,} tokens {', '.join(texts)}"))
    if state := model.state_bytes():
        facts.append(("state", f"{size_text(state)} a sequence"))
    return facts


def growth_by_type(model: LanguageModel) -> dict[str, float]:
    """Bytes by which the cache grows with 1,000 tokens of a long context, by the cache's type."""
    fits = (
        name
        for name in SHOWN_CACHE_TYPES
        if all(_fits(layer.cache, name) for layer in model.layers)
    )
    return {name: PER * model.growth(name, name) for name in fits}


def _fits(cache: Any, name: str) -> bool:
    block = 32 if name.startswith("Q") else 1
    return all(w % block == 0 for w in (cache.key_width, cache.value_width, cache.latent_width))


def _shares(model: LanguageModel, label: str, key: Callable[[Weight], str]) -> Table:
    """Tensors, their elements and their bytes by type or by role, the largest first."""
    counts, elements, sizes = Counter[str](), Counter[str](), Counter[str]()
    for weight in model.weights:
        counts[key(weight)] += 1
        elements[key(weight)] += weight.elements
        sizes[key(weight)] += weight.size
    grid = table("", f"{label}|tensors|parameters|size", (1, 2, 3))
    for name, size in sizes.most_common():
        row = (f"{counts[name]:,}", count_text(elements[name]), size_text(size))
        grid.add_row(name.lower(), *row)
    return grid


def language_model_figures(model: LanguageModel) -> dict[str, Any]:
    """The same figures as plain values; sizes in bytes."""
    sizes, experts = model.sizes, model.sizes.experts
    return {
        "model": model.name,
        "source": model.source,
        "architecture": sizes.architecture,
        "file_type": model.file_type,
        "complete": model.complete,
        "layers": sizes.layers,
        "draft_layers": sizes.draft_layers,
        "width": sizes.width,
        "vocabulary": sizes.vocabulary,
        "context": sizes.context,
        "tied": model.tied,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "bytes": model.size,
        "draft_bytes": sum(weight.size for weight in model.draft),
        "bits_per_parameter": _bits(model),
        "bytes_by_type": model.bytes_by_type(),
        "bytes_by_role": model.bytes_by_role(),
        "experts": None if experts is None else asdict(experts),
        "attention": [layer.cache.attention for layer in model.layers],
        "window": sizes.window,
        "cache_bytes_per_1000_tokens": growth_by_type(model),
        "state_bytes": model.state_bytes(),
        "warnings": model.warnings,
    }
