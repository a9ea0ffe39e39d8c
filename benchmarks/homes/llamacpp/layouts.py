"""Layouts that exercise every flag that situate exports, for any model."""

from __future__ import annotations

from collections.abc import Iterator

from situate.language.cache import CacheOptions
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel

GPUS = 3
"""Devices that the layouts need."""

Case = tuple[str, Layout, CacheOptions]


def cases(model: LanguageModel, context: int = 4096) -> Iterator[Case]:
    """(name, layout, options) of each run."""
    count = len(model.layers)
    plain = CacheOptions(context)
    one, two = (0,) * count, _cut(count, (0, 1))
    three = _cut(count, (0, 1, 2))
    partial = (HOST, HOST, *_cut(count - 2, (0, 1)))
    yield "one GPU", Layout((0,), one, one, 0), plain
    yield "two GPUs", Layout((0, 1), two, two, 1), plain
    yield "three GPUs, other order", Layout((2, 0, 1), _cut(count, (2, 0, 1)), _cut(count, (2, 0, 1)), 1), plain
    yield "layers on the host", Layout((0, 1), partial, partial, 1), plain
    yield "cache on the host", Layout((0, 1), two, two, 1, host_cache=True), plain
    if not model.tied:
        yield "output on the first GPU", Layout((0, 1, 2), three, three, 0), plain
    yield "output on the host", Layout((0, 1, 2), three, three, HOST), plain
    short = (HOST,) * (count - 1) + (0,)
    yield "one layer on a GPU", Layout((0,), short, short, 0), plain
    long = CacheOptions(4 * context, "Q8_0", "Q8_0", ubatch=1024)
    yield "long context, q8_0, -ub 1024", Layout((0, 1), two, two, 1, ubatch=1024), long
    slots = CacheOptions(context, ubatch=128, slots=4)
    yield "four slots, -ub 128", Layout((0, 1), two, two, 1, ubatch=128), slots
    unified = CacheOptions(context, slots=4, unified=True)
    yield "four slots, one cache", Layout((0, 1), two, two, 1), unified
    if any(layer.experts for layer in model.layers):
        yield from _mixtures(model, plain)
    if any(layer.cache.attention == "window" for layer in model.layers):
        full = CacheOptions(context, full_window=True)
        yield "full windows", Layout((0, 1), two, two, 1), full


def _mixtures(model: LanguageModel, options: CacheOptions) -> Iterator[Case]:
    count = len(model.layers)
    two = _cut(count, (0, 1))
    yield "all experts on the host", Layout((0, 1), two, _away(model, two, range(count), HOST), 1), options
    first = _away(model, two, range(count // 2), HOST)
    yield "experts of half the layers on the host", Layout((0, 1), two, first, 1), options
    some = _away(model, two, range(1, count, 2), 2)
    yield "every other layer's experts on a third GPU", Layout((0, 1, 2), two, some, 1), options


def _cut(count: int, gpus: tuple[int, ...]) -> tuple[int, ...]:
    """Layers in equal shares."""
    return tuple(gpus[i * len(gpus) // count] for i in range(count))


def _away(
    model: LanguageModel, layers: tuple[int, ...], numbers: range, device: int
) -> tuple[int, ...]:
    """The places of experts, those of some layers on another device."""
    return tuple(
        device if i in numbers and model.layers[i].experts else place
        for i, place in enumerate(layers)
    )
