"""Memory of a home: whether a layout fits, and the room that its buffers leave for layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from situate.language.cache import CacheOptions
from situate.language.home import Home
from situate.language.layout import HOST, Layout
from situate.language.memory import DeviceMemory, device_memory
from situate.language.model import LanguageModel
from situate.language.planning.cuts import Loads, Room


def memory_of(
    model: LanguageModel,
    layout: Layout,
    options: CacheOptions,
    home: Home,
    exact: bool = False,
    growth: bool = False,
) -> tuple[DeviceMemory, ...]:
    """The memory of each GPU of the home, and of its host last; `exact` and `growth` as in
    `device_memory`."""
    options = replace(options, ubatch=layout.ubatch)
    memory = device_memory(
        model, layout, options, len(home.accelerators), exact=exact, growth=growth
    )
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
    exact: bool = False,
) -> Room:
    """The most room that layouts of a kind leave on each GPU beside their buffers.

    Args:
        model, home, options: as in a plan.
        probe: ubatch, place of the cache and op offload.
        host_parts: some experts or layers are on the host.
        first: the GPU that leads the order; None for any.
        several: layers are on more than one GPU.
        exact: as in `device_memory`.
    """
    whole = np.array([gpu.memory - gpu.context for gpu in home.accelerators], float)
    single = _least(model, options, probe, host_parts, 1, None, exact)
    alone = _least(model, options, probe, host_parts, 1, HOST, exact)
    leading_last, leading, inner, final = single[0], alone[0], alone[0], single[0]
    if several:
        first_of_three, inner, final = _least(model, options, probe, host_parts, 3, None, exact)
        leading = min(leading, first_of_three)
        if first is None:
            leading = inner = min(leading, inner)
            leading_last = final = min(leading_last, final)
    leads = np.array([first in (None, gpu) for gpu in range(len(whole))], bool)
    return Room(
        whole - np.where(leads, leading, inner),
        whole - np.where(leads, leading_last, final),
        whole - _of_one(model, options, probe, 0, exact),
        whole - _of_one(model, options, probe, HOST, exact),
    )


def _of_one(
    model: LanguageModel, options: CacheOptions, probe: Layout, output: int, exact: bool
) -> float:
    """Bytes of a GPU without layers, which may hold the output."""
    layers = (HOST,) * len(model.layers)
    layout = replace(probe, order=(0,), layers=layers, experts=layers, output=output)
    options = replace(options, ubatch=probe.ubatch)
    memory = device_memory(model, layout, options, 1, exact=exact, growth=False)[0]
    return memory.total + memory.margin


def _least(
    model: LanguageModel,
    options: CacheOptions,
    probe: Layout,
    host_parts: bool,
    gpus: int,
    output: int | None,
    exact: bool,
) -> list[float]:
    """The fewest bytes of each of some GPUs beside layers: buffers, margin, and on the last one the
    output. Buffers depend on the kinds of layers on a GPU, and on the place of their experts."""
    output = gpus - 1 if output is None else output
    count = len(model.layers)
    even = [min(i * gpus // count, gpus - 1) for i in range(count)]
    mixed = host_parts and any(layer.experts for layer in model.layers)
    overheads = []
    for layers in (even, even[::-1]):
        layers = [HOST, *layers[1:]] if host_parts and count > 1 else layers
        overheads.append(_overheads(model, options, probe, layers, layers, gpus, output, exact))
        if mixed:
            pairs = zip(model.layers, layers, strict=True)
            away = [HOST if layer.experts else place for layer, place in pairs]
            overheads.append(_overheads(model, options, probe, layers, away, gpus, output, exact))
    return [min(bytes_) for bytes_ in zip(*overheads, strict=True)]


def _overheads(
    model: LanguageModel,
    options: CacheOptions,
    probe: Layout,
    layers: Sequence[int],
    experts: Sequence[int],
    gpus: int,
    output: int,
    exact: bool,
) -> list[float]:
    """Bytes of each of some GPUs beside layers, in one layout."""
    layout = replace(
        probe,
        order=tuple(range(gpus)),
        layers=tuple(layers),
        experts=tuple(experts),
        output=output,
    )
    options = replace(options, ubatch=probe.ubatch)
    memory = device_memory(model, layout, options, gpus, exact=exact, growth=False)
    loads = _loads_of(model, options, layout, gpus)
    return [m.total + m.margin - load for m, load in zip(memory[:gpus], loads, strict=True)]


def _loads_of(
    model: LanguageModel, options: CacheOptions, layout: Layout, gpus: int
) -> list[float]:
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
    loads = _loads_of(model, options, layout, gpus)
    inner, last, output, lead = (
        table.copy() for table in (room.inner, room.last, room.output, room.lead)
    )
    for gpu in layout.order:
        beside = memory[gpu].total + memory[gpu].margin - loads[gpu]
        rest = home.accelerators[gpu].memory - beside
        if gpu in layout.layers:
            (last if gpu == layout.output else inner)[gpu] = rest
        else:
            (output if gpu == layout.output else lead)[gpu] = rest
    return Room(inner, last, output, lead)


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
