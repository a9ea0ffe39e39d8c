"""Memory of a home: whether a layout fits, and the room that its buffers leave for layers."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from situate.language.cache import CacheOptions
from situate.language.expert_kinds import divided_layers, expert_places
from situate.language.home import Home
from situate.language.layer_seconds import Floats, layer_kinds
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


class Capacity:
    """The room of a home for the layers of a model, beside buffers that depend on the layout.

    Buffers by rules depend on the kinds of layers on a device, and not on their number. So they are
    computed for a model with at most two layers of each kind on each device. With their margin they
    are never above exact ones with theirs, so that a layout that fits exactly fits by rules too.

    Attributes:
        exact: layouts have to fit with exact compute buffers, as in `device_memory`.
    """

    def __init__(
        self, model: LanguageModel, home: Home, options: CacheOptions, exact: bool = False
    ) -> None:
        self.model, self.home, self.options, self.exact = model, home, options, exact
        self._kinds = layer_kinds(model)
        self._loads: dict[tuple[int, bool], Loads] = {}
        self._probes: dict[object, list[float]] = {}

    @cached_property
    def memory(self) -> Floats:
        """(GPUs + 1,) bytes of each GPU, and of the host last."""
        return np.array([processor.memory for processor in self.home.processors], float)

    def loads(self, ubatch: int, host_cache: bool) -> Loads:
        """Bytes of each layer on its device."""
        key = ubatch, host_cache
        if key not in self._loads:
            options = replace(self.options, ubatch=ubatch)
            self._loads[key] = layer_loads(self.model, options, host_cache)
        return self._loads[key]

    def layer_bytes(self, layout: Layout) -> Floats:
        """(GPUs + 1,) bytes of the layers on each device, their cache included."""
        loads = self.loads(layout.ubatch, layout.host_cache)
        sums = _sums(layout, loads, self.loads(layout.ubatch, False), len(self.memory))
        return sums + self._moved_bytes(layout)

    def _moved_bytes(self, layout: Layout) -> Floats:
        """(GPUs + 1,) bytes by which experts away from the rest of their layer's change sums."""
        changes = np.zeros(len(self.memory))
        for number in divided_layers(layout) if layout.moved else ():
            for weight, place in expert_places(self.model, layout, number):
                changes[place] += weight.size
                changes[layout.experts[number]] -= weight.size
        return changes

    def beside(self, layout: Layout) -> Floats:
        """(GPUs + 1,) bytes of each device beside layers: output, buffers, context and margin."""
        model, small = self._condensed(layout)
        memory = memory_of(model, small, self.options, self.home)
        options = replace(self.options, ubatch=layout.ubatch)
        loads, whole = (layer_loads(model, options, on) for on in (layout.host_cache, False))
        sums = _sums(small, loads, whole, len(self.memory)) + self._moved_bytes(layout)
        beside: Floats = _totals(memory) - sums
        return beside

    def exactly(self) -> Capacity:
        """The same, for layouts that fit with exact compute buffers."""
        other = copy(self)
        other.exact = True
        return other

    def beside_all(self, layout: Layout) -> Floats:
        """The bytes of `beside` by the memory of all layers, exact where that is required."""
        memory = memory_of(self.model, layout, self.options, self.home, self.exact)
        beside: Floats = _totals(memory) - self.layer_bytes(layout)
        return beside

    def free(self, layout: Layout) -> Floats:
        """(GPUs + 1,) bytes that stay free on each device, by `beside_all`."""
        free: Floats = self.memory - self.beside_all(layout) - self.layer_bytes(layout)
        return free

    def fits(self, layout: Layout) -> bool:
        """True if a layout fits by rules and, where that is required, with exact buffers."""
        return self.leaves_room(layout, self.beside(layout)) and (
            not self.exact or self.leaves_room(layout, self.beside_all(layout))
        )

    def leaves_room(self, layout: Layout, beside: Floats) -> bool:
        """True if the layers of a layout fit beside so many bytes on each device."""
        layers = self.layer_bytes(layout)
        free = self.memory - beside - layers
        # A device without memory fits if nothing is on it.
        return bool(((free >= 0) | (beside + layers == 0)).all())

    def _condensed(self, layout: Layout) -> tuple[LanguageModel, Layout]:
        """The first and the last layer of each kind on each device, and those whose experts are
        divided."""
        ends: dict[tuple[int, int, int], list[int]] = {}
        for i, key in enumerate(zip(self._kinds, layout.layers, layout.experts, strict=True)):
            # The first entry stays, the second follows the last layer of the kind.
            ends.setdefault(key, [i, i])[1] = i
        divided = divided_layers(layout) if layout.moved else []
        members = sorted({i for pair in ends.values() for i in pair}.union(divided))
        small = replace(
            layout,
            layers=tuple(layout.layers[i] for i in members),
            experts=tuple(layout.experts[i] for i in members),
        )
        return replace(self.model, layers=tuple(self.model.layers[i] for i in members)), small

    def first_room(self, probe: Layout, host_parts: bool, first: int | None, several: bool) -> Room:
        """The most room that layouts of a kind leave on each GPU beside their buffers.

        Args:
            probe: ubatch, place of the cache and op offload.
            host_parts: some experts or layers are on the host.
            first: the GPU that leads the order; None for any.
            several: layers are on more than one GPU.
        """
        whole = np.array([gpu.memory - gpu.context for gpu in self.home.accelerators], float)
        # One GPU with the output, and one whose output is on the host.
        single = self._least(probe, host_parts, 1)
        alone = self._least(probe, host_parts, 1, HOST)
        leading_last, leading, inner, final = single[0], alone[0], alone[0], single[0]
        if several:
            first_of_three, inner, final = self._least(probe, host_parts, 3)
            leading = min(leading, first_of_three)
            # Any GPU may lead, so each has the least of both roles.
            if first is None:
                leading = inner = min(leading, inner)
                leading_last = final = min(leading_last, final)
        leads = np.array([first in (None, gpu) for gpu in range(len(whole))], bool)
        return Room(
            whole - np.where(leads, leading, inner),
            whole - np.where(leads, leading_last, final),
            whole - self._least(probe, True, 1, 0, empty=True)[0],
            whole - self._least(probe, True, 1, HOST, empty=True)[0],
        )

    def _least(
        self,
        probe: Layout,
        host_parts: bool,
        gpus: int,
        output: int | None = None,
        empty: bool = False,
    ) -> list[float]:
        """The fewest bytes of each of some GPUs beside layers: buffers, margin, and on the last one
        the output.

        Buffers depend on the kinds of layers on a GPU, and on the place of their experts.
        """
        output = gpus - 1 if output is None else output
        key = (probe.ubatch, probe.host_cache, probe.op_offload, host_parts, gpus, output, empty)
        if key not in self._probes:
            layouts = _probes(self.model, probe, host_parts, gpus, output, empty)
            overheads = [self._overheads(layout, gpus) for layout in layouts]
            self._probes[key] = [min(sizes) for sizes in zip(*overheads, strict=True)]
        return self._probes[key]

    def _overheads(self, layout: Layout, gpus: int) -> list[float]:
        """Bytes of each of some GPUs beside layers and context, in one layout."""
        model, small = self._condensed(layout)
        options = replace(self.options, ubatch=layout.ubatch)
        loads = layer_loads(model, options, layout.host_cache)
        memory = _totals(device_memory(model, small, options, gpus, exact=False, growth=False))
        beside: list[float] = (memory - _sums(small, loads, loads, gpus + 1))[:gpus].tolist()
        return beside

    def measured_room(self, layout: Layout, beside: Floats, room: Room) -> Room:
        """The room with the buffers of a layout, on the GPUs that it uses."""
        inner, last, output, lead = (
            table.copy() for table in (room.inner, room.last, room.output, room.lead)
        )
        for gpu in layout.order:
            rest = self.memory[gpu] - beside[gpu]
            if gpu in layout.layers:
                (last if gpu == layout.output else inner)[gpu] = rest
            else:
                (output if gpu == layout.output else lead)[gpu] = rest
        return Room(inner, last, output, lead)


def _totals(memory: Sequence[DeviceMemory]) -> Floats:
    """(devices,) bytes with the margin."""
    return np.array([part.total + part.margin for part in memory], float)


def _sums(layout: Layout, loads: Loads, whole: Loads, devices: int) -> Floats:
    """(devices,) bytes of the layers on each device.

    Args:
        layout: where they lie.
        loads: of the layers where they lie.
        whole: the same with their caches, which may be in host memory.
        devices: with the host.
    """
    totals = np.zeros(devices)
    np.add.at(totals, np.array(layout.layers), loads.trunk)
    np.add.at(totals, np.array(layout.experts), loads.experts)
    # Caches that are not with their layers are in host memory.
    totals[HOST] += (whole.trunk - loads.trunk).sum()
    return totals


def _probes(
    model: LanguageModel, probe: Layout, host_parts: bool, gpus: int, output: int, empty: bool
) -> list[Layout]:
    """Layouts on some GPUs: even cuts with and without experts, or no layers at all."""
    count = len(model.layers)
    even = [min(i * gpus // count, gpus - 1) for i in range(count)]
    mixed = host_parts and any(layer.experts for layer in model.layers)
    pairs: list[tuple[Sequence[int], Sequence[int]]] = []
    # Unequal layers may be at either end of the order, so cuts run both ways.
    for layers in [[HOST] * count] if empty else [even, even[::-1]]:
        layers = [HOST, *layers[1:]] if host_parts and count > 1 else layers
        pairs.append((layers, layers))
        if mixed and not empty:
            places = zip(model.layers, layers, strict=True)
            pairs.append((layers, [HOST if layer.experts else place for layer, place in places]))
    return [
        replace(
            probe,
            order=tuple(range(gpus)),
            layers=tuple(layers),
            experts=tuple(experts),
            output=output,
        )
        for layers, experts in pairs
    ]


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
