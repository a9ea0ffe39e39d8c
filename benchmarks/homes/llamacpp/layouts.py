"""Layouts that exercise every flag that situate exports, for any model."""

from __future__ import annotations

from collections.abc import Iterator

from situate.data.cluster import Cluster, Device, Link
from situate.language.cache import CacheOptions
from situate.language.expert_kinds import with_kinds
from situate.language.home import CONTEXT_BYTES, home_of
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel
from situate.language.planning.planner import Planner
from situate.language.planning.workload import Workload

GPUS = 3
"""Devices that the layouts need."""

MIB = 2**20

Case = tuple[str, Layout, CacheOptions]


def cases(model: LanguageModel, context: int = 4096) -> Iterator[Case]:
    """(name, layout, options) of each run."""
    count = len(model.layers)
    plain = CacheOptions(context)
    one, two = (0,) * count, _cut(count, (0, 1))
    three, turned = _cut(count, (0, 1, 2)), _cut(count, (2, 0, 1))
    yield "one GPU", Layout((0,), one, one, 0), plain
    yield "two GPUs", Layout((0, 1), two, two, 1), plain
    yield "three GPUs, other order", Layout((2, 0, 1), turned, turned, 1), plain
    partial = (HOST, HOST, *_cut(count - 2, (0, 1)))
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
        yield from _mixtures(model, two, plain)
    if any(layer.cache.attention == "window" for layer in model.layers):
        full = CacheOptions(context, full_window=True)
        yield "full windows", Layout((0, 1), two, two, 1), full


def _mixtures(
    model: LanguageModel, layers: tuple[int, ...], options: CacheOptions
) -> Iterator[Case]:
    """Layers whose experts are elsewhere."""
    count = len(layers)
    for name, numbers, device in (
        ("all experts on the host", range(count), HOST),
        ("experts of half the layers on the host", range(count // 2), HOST),
        ("every other layer's experts on a third GPU", range(1, count, 2), 2),
    ):
        experts = tuple(
            device if i in numbers and model.layers[i].experts else place
            for i, place in enumerate(layers)
        )
        order = (0, 1) if device == HOST else (0, 1, 2)
        yield name, Layout(order, layers, experts, 1), options
    mixtures = [i for i, layer in enumerate(model.layers) if layer.experts]
    away = tuple(HOST if i in mixtures else place for i, place in enumerate(layers))
    whole = Layout((0, 1), layers, away, 1)
    for kinds in (("down",), ("gate", "up", "gate_up")):
        layout = with_kinds(model, whole, mixtures[-1], frozenset(kinds), 1, HOST)
        yield f"{kinds[0]} experts of one layer on a GPU", layout, options


def planned(model: LanguageModel) -> Case:
    """situate's own plan for two cards that together hold most of the model."""
    buffers = CONTEXT_BYTES + 400 * MIB
    cards = [
        Device(
            f"gpu{i}",
            memory=int(share * model.size) + buffers,
            bandwidth=rate,
            flops={"int8": 1e14},
        )
        for i, (share, rate) in enumerate(((0.5, 9e11), (0.3, 4e11)))
    ]
    host = Device("cpu", kind="cpu", memory=64 * 2**30, bandwidth=5e10, threads=8)
    home = home_of(Cluster("home", (*cards, host), (Link("*", "*", 8e9, 1e-5),)))
    options = CacheOptions(2048)
    plan = Planner(model, home, options, Workload(1000, 200), ubatches=(512, 256)).plan()
    return "as planned", plan.layout, plan.options


def _cut(count: int, gpus: tuple[int, ...]) -> tuple[int, ...]:
    """Layers in equal shares."""
    return tuple(gpus[i * len(gpus) // count] for i in range(count))
