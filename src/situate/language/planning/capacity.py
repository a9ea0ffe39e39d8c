"""Memory of a home: whether a layout fits, and the room that its buffers leave for layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from situate.language.cache import CacheOptions
from situate.language.home import Home
from situate.language.layout import HOST, Layout
from situate.language.memory import DeviceMemory, device_memory
from situate.language.model import LanguageModel
from situate.language.planning.cuts import Loads, Room


def memory_of(
    model: LanguageModel, layout: Layout, options: CacheOptions, home: Home
) -> tuple[DeviceMemory, ...]:
    """The memory of each GPU of the home, and of its host last."""
    options = replace(options, ubatch=layout.ubatch)
    memory = device_memory(model, layout, options, len(home.accelerators))
    contexts = [gpu.context if i in layout.order else 0 for i, gpu in enumerate(home.accelerators)]
    return tuple(
        replace(part, context=context) for part, context in zip(memory, [*contexts, 0], strict=True)
    )


def free_bytes(memory: tuple[DeviceMemory, ...], home: Home) -> list[float]:
    """Bytes that stay free on each GPU, and on the host, beyond the margin of the estimate."""
    return [
        processor.memory - part.total - part.margin
        for processor, part in zip(home.processors, memory, strict=True)
    ]


def fits(memory: tuple[DeviceMemory, ...], home: Home) -> bool:
    """True if no device needs more memory than it has; GPUs without any part do not count."""
    return all(
        free >= 0 or not (part.total or part.margin)
        for free, part in zip(free_bytes(memory, home), memory, strict=True)
    )


def layer_loads(model: LanguageModel, options: CacheOptions, host_cache: bool) -> Loads:
    """Bytes of each layer on its device."""
    trunk, experts = [], []
    for layer in model.layers:
        mixture = sum(weight.size for weight in layer.weights if weight.role == "experts")
        cache = layer.cache.bytes(options) + layer.cache.state_bytes(options.slots)
        trunk.append(layer.size - mixture + (0 if host_cache else cache))
        experts.append(mixture)
    return Loads(np.array(trunk), np.array(experts))


def first_room(
    model: LanguageModel,
    home: Home,
    options: CacheOptions,
    probe: Layout,
    host_parts: bool,
    first: int | None,
    several: bool,
) -> Room:
    """The room on each GPU, by the buffers of layouts that are like those to come.

    Args:
        model, home, options: as in a plan.
        probe: ubatch, place of the cache and op offload.
        host_parts: some experts or layers are on the host.
        first: the GPU that leads the order; None for any.
        several: layers are on more than one GPU.
    """
    count = 3 if several else 1
    memory = [
        _overheads(model, options, probe, host_parts, gpus)
        for gpus in ((1, count) if several else (1,))
    ]
    whole = np.array([gpu.memory - gpu.context for gpu in home.accelerators], float)
    single, split = memory[0], memory[-1]
    middle, final = split[min(1, count - 1)], split[-1]
    inner, last = whole - middle, whole - final
    leaders = range(len(whole)) if first is None and not several else [first]
    for gpu in leaders:
        if gpu is not None:
            inner[gpu] = whole[gpu] - (split[0] if several else single[0])
            last[gpu] = whole[gpu] - single[0]
    return Room(inner, last)


def _overheads(
    model: LanguageModel, options: CacheOptions, probe: Layout, host_parts: bool, gpus: int
) -> list[float]:
    """Bytes of each of some GPUs beside layers: buffers, margin, and on the last the output."""
    layers = [min(i * gpus // len(model.layers), gpus - 1) for i in range(len(model.layers))]
    experts = list(layers)
    if host_parts:
        mixtures = [i for i, layer in enumerate(model.layers) if layer.experts is not None]
        for i in mixtures:
            experts[i] = HOST
        if not mixtures:
            layers[0] = experts[0] = HOST
    layout = replace(
        probe,
        order=tuple(range(gpus)),
        layers=tuple(layers),
        experts=tuple(experts),
        output=gpus - 1,
    )
    options = replace(options, ubatch=probe.ubatch)
    memory = device_memory(model, layout, options, gpus)
    return [
        part.total + part.margin - load
        for part, load in zip(memory[:gpus], loads_of(model, options, layout, gpus), strict=True)
    ]


def loads_of(model: LanguageModel, options: CacheOptions, layout: Layout, gpus: int) -> list[float]:
    """Bytes of the layers on each GPU."""
    loads = layer_loads(model, replace(options, ubatch=layout.ubatch), layout.host_cache)
    totals = np.zeros(gpus + 1)
    np.add.at(totals, np.array(layout.layers), loads.trunk)
    np.add.at(totals, np.array(layout.experts), loads.experts)
    return [float(total) for total in totals[:gpus]]


def measured_room(
    model: LanguageModel,
    home: Home,
    options: CacheOptions,
    layout: Layout,
    memory: tuple[DeviceMemory, ...],
    room: Room,
) -> Room:
    """The room with the buffers of a layout, on the GPUs that it uses."""
    gpus = len(home.accelerators)
    loads = loads_of(model, options, layout, gpus)
    inner, last = room.inner.copy(), room.last.copy()
    for gpu in layout.order:
        beside = memory[gpu].total + memory[gpu].margin - loads[gpu]
        rest = home.accelerators[gpu].memory - beside
        (last if gpu == layout.output else inner)[gpu] = rest
    return Room(inner, last)


def alike(home: Home) -> list[int]:
    """(GPUs,) the first GPU that differs from each one in nothing but its name."""
    kinds: list[int] = []
    for i in range(len(home.accelerators)):
        kinds.append(next((k for k in dict.fromkeys(kinds) if _alike(home, k, i)), i))
    return kinds


def _alike(home: Home, a: int, b: int) -> bool:
    """True if two GPUs may change places."""
    one, other = home.accelerators[a], home.accelerators[b]
    if replace(one, name="") != replace(other, name=""):
        return False
    count = len(home.accelerators) + 1
    swap = {a: b, b: a}
    places = [swap.get(i, i) for i in range(count)]
    return all(
        table[i][j] == table[places[i]][places[j]]
        for table in (home.bandwidth, home.latency)
        for i in range(count)
        for j in range(count)
        if i != j
    )
