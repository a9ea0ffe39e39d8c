"""The best cut of a model's layers over devices, by dynamic programming over sets of devices.

Layers are contiguous: some on the host, then those of each GPU in some order. A layer's experts are
with it or on the host. Seconds are sums over layers, and memory is limited on each GPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from situate.language.layout import HOST
from situate.language.planning.packing import Floats, Ints, knapsack, savings_of_spans, spans
from situate.language.planning.prices import Prices


@dataclass(frozen=True)
class Loads:
    """Bytes by layer.

    Attributes:
        trunk: (layers,) weights but experts, with the cache if it is on the GPU.
        experts: (layers,) weights of experts, 0 in a dense layer.
    """

    trunk: Ints
    experts: Ints


@dataclass(frozen=True)
class Room:
    """Bytes of each GPU that layers may take.

    Attributes:
        inner: (GPUs,) of a GPU without the output.
        last: (GPUs,) of a GPU with the output, which is subtracted.
        output: (GPUs,) of a GPU with the output and no layer.
        lead: (GPUs,) of a GPU that computes with the host's weights, and holds no layer.
    """

    inner: Floats
    last: Floats
    output: Floats
    lead: Floats

    def least(self, other: Room) -> Room:
        """The room that both leave."""
        mine, others = vars(self).values(), vars(other).values()
        return Room(*(np.minimum(a, b) for a, b in zip(mine, others, strict=True)))

    def within(self, other: Room) -> bool:
        """True if no GPU has more room than in another one."""
        return self.least(other).same(self)

    def same(self, other: Room) -> bool:
        """True if both leave the same bytes."""
        mine, others = vars(self).values(), vars(other).values()
        return all(np.array_equal(a, b) for a, b in zip(mine, others, strict=True))


@dataclass(frozen=True)
class Cut:
    """A cut of the layers.

    Attributes:
        seconds: of the workload; a lower bound of it if experts were divided.
        route: (GPU, end) of each run of layers, in order; the host's run comes first.
        output: the GPU of the output, or `HOST`.
        away: layers whose experts are on the host, among those on GPUs.
        lead: a GPU without layers that computes with the host's weights, or `HOST` without one.
    """

    seconds: float
    route: tuple[tuple[int, int], ...]
    output: int
    away: frozenset[int] = frozenset()
    lead: int = HOST


@dataclass
class _Tables:
    """The least seconds of the first layers, by the GPUs in use (as bits) and the last of them.

    The last device is `HOST` if no GPU has a layer yet.

    Attributes:
        groups: the last devices of each set of GPUs.
        least: (sets, devices, layers + 1) by number of layers.
        final: (sets, devices) all layers, with the output on the last GPU.
    """

    groups: dict[int, list[int]]
    least: Floats
    final: Floats

    def add(self, used: int, last: int, least: Floats, final: float = np.inf) -> None:
        """Seconds of one more set."""
        self.groups.setdefault(used, []).append(last)
        self.least[used, last], self.final[used, last] = least, final


@dataclass
class Cutter:
    """Cuts under one set of prices.

    Attributes:
        prices: seconds by layer.
        loads: bytes by layer.
        room: of the GPUs.
        host_parts: False to keep all layers, experts and the output on GPUs.
        first: the GPU that leads the order; None for any.
        kinds: (GPUs,) equal numbers for GPUs that are alike, which are used in their order.
        most: largest number of GPUs in use.
        exact: experts are whole; otherwise some layer of each GPU may be divided, for a bound.
        required: GPUs that must hold a layer or the output, as bits.
        proves: False once experts of more than two sizes are packed without proof.
    """

    prices: Prices
    loads: Loads
    room: Room
    host_parts: bool
    first: int | None
    kinds: Sequence[int]
    most: int = 8
    exact: bool = True
    required: int = 0
    proves: bool = True
    _seconds: dict[object, Floats] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.loads.trunk)

    def best(self) -> Cut | None:
        """The fastest cut; None if none fits."""
        tables = self._tables()
        shortest = np.minimum(tables.final, tables.least[:, :, -1])
        least, choice = np.inf, None
        for used, group in tables.groups.items():
            for last in group:
                if shortest[used, last] >= least:
                    continue
                for seconds, output in self._endings(tables, used, last):
                    # No required GPU is without a layer or the output.
                    if seconds < least and not self.required & ~_bits(used, output):
                        least, choice = seconds, (used, last, output)
        return None if choice is None else self._traced(tables, least, *choice)

    def _endings(self, tables: _Tables, used: int, last: int) -> Iterator[tuple[float, int]]:
        """Seconds of all layers with each place of the output."""
        if last != HOST:
            yield float(tables.final[used, last] + self.prices.output[last]), last
        # Without a GPU nothing computes for the host, as the prices of a first GPU have it.
        computing = bool(used) or self.first is None
        others = [HOST] if self.host_parts and computing else []
        others += [gpu for gpu in self._next(used) if self.room.output[gpu] >= 0]
        if last == HOST and used and self.room.output[used.bit_length() - 1] >= 0:
            others.append(used.bit_length() - 1)
        for output in others:
            seconds = tables.least[used, last, -1] + self.prices.crossing[last, output]
            yield float(seconds + self.prices.output[output]), output

    def _next(self, used: int) -> Iterator[int]:
        """GPUs that may follow, of those that are alike the first one alone."""
        if used.bit_count() >= self.most:
            return
        if self.first is not None and not used:
            yield self.first
            return
        kinds = set()
        for gpu, kind in enumerate(self.kinds):
            if not used >> gpu & 1 and kind not in kinds:
                kinds.add(kind)
                yield gpu

    def _tables(self) -> _Tables:
        gpus = len(self.kinds)
        shape = 1 << gpus, gpus + 1
        tables = _Tables({}, np.full((*shape, self.count + 1), np.inf), np.full(shape, np.inf))
        start = self._start()
        tables.add(0, HOST, start)
        if self.first is not None and not self.required and self.room.lead[self.first] >= 0:
            # The first GPU may hold no layers, and compute for the host alone.
            tables.add(1 << self.first, HOST, start)
        for size in range(gpus):
            # All sets of one size that a GPU follows are extended by it at once.
            sets: dict[int, list[int]] = defaultdict(list)
            for used in [used for used in tables.groups if used.bit_count() == size]:
                for gpu in self._next(used):
                    sets[gpu].append(used)
            for gpu, members in sets.items():
                least, final = self._extended(self._before(tables, members, gpu), gpu)
                fits = np.isfinite(least).any(axis=1) | np.isfinite(final)
                for i in np.flatnonzero(fits):
                    tables.add(members[i] | 1 << gpu, gpu, least[i], final[i])
        return tables

    def _start(self) -> Floats:
        """(layers + 1,) seconds of layers on the host alone."""
        least = np.full(self.count + 1, np.inf)
        least[0] = 0.0
        if self.host_parts:
            least[1:] = np.cumsum(self.prices.home[:, HOST])
        return least

    def _before(self, tables: _Tables, sets: Sequence[int], gpu: int) -> Floats:
        """(sets, layers + 1) the least seconds up to a GPU, whichever device is the last before."""
        ways = tables.least[list(sets)] + self.prices.crossing[:, gpu, None]
        least: Floats = ways.min(axis=1)
        return least

    def _extended(self, before: Floats, gpu: int) -> tuple[Floats, Floats]:
        """The seconds of sets that a GPU follows, from those before it: (sets, layers + 1), and
        (sets,) with the output."""
        segments, lasting = self._segments(gpu), self._segments_with_output(gpu)
        # (sets, begin, end) -> (sets, end): the GPU has the layers from begin to end.
        least = (before[:, :, None] + segments).min(axis=1)
        return least, (before[:, :-1] + lasting).min(axis=1)

    def _segments(self, gpu: int) -> Floats:
        """(layers + 1, layers + 1) seconds of layers from the first number up to the second."""
        return self._priced(gpu, float(self.room.inner[gpu]), slice(None))

    def _segments_with_output(self, gpu: int) -> Floats:
        """(layers,) seconds of layers from a number on to the end, beside the output."""
        return self._priced(gpu, float(self.room.last[gpu]), slice(self.count, None))[:-1, 0]

    def _priced(self, gpu: int, room: float, ends: slice) -> Floats:
        """(layers + 1, ends) seconds of spans of layers on a GPU; infinite if they do not fit."""
        # The leading GPU is nearer to the host's experts than others of its kind.
        key = self.kinds[gpu], gpu == self.first, room, ends.start
        if key not in self._seconds:
            self._seconds[key] = self._span_seconds(gpu, room, ends)
        return self._seconds[key]

    def _span_seconds(self, gpu: int, room: float, ends: slice) -> Floats:
        home, away = self.prices.home[:, gpu], self.prices.away[:, gpu]
        mixed = self.loads.experts > 0
        trunk = self.loads.trunk.astype(float)
        if self.host_parts:
            # All experts are on the host at first; those that fit save their difference.
            free = room - spans(trunk, ends)
            savings = np.where(mixed, away - home, 0.0)
            saved, proves = savings_of_spans(self.loads.experts, savings, free, ends, self.exact)
            seconds = spans(np.where(mixed, away, home), ends) - saved
            self.proves &= proves
        else:
            free = room - spans(trunk + self.loads.experts, ends)
            seconds = spans(home, ends)
        seconds[free < 0] = np.inf
        # A segment has at least one layer.
        begins, numbers = np.arange(self.count + 1)[:, None], np.arange(self.count + 1)[ends]
        seconds[begins >= numbers] = np.inf
        return seconds

    def _traced(self, tables: _Tables, seconds: float, used: int, last: int, output: int) -> Cut:
        """The cut that ends with a last GPU and a place of the output."""
        route: list[tuple[int, int]] = []
        away: set[int] = set()
        end, final = self.count, output == last != HOST
        while last != HOST:
            # The tables hold seconds alone: the step that led to them is searched again.
            used ^= 1 << last
            before = self._before(tables, [used], last)[0]
            lasting = self._segments_with_output(last) if final else self._segments(last)[:end, end]
            begin = int((before[: len(lasting)] + lasting).argmin())
            room = self.room.last if final else self.room.inner
            away |= self._away(last, begin, end, float(room[last]))
            route.append((last, end))
            gpu, end, final = last, begin, False
            ways = tables.least[used, :, end] + self.prices.crossing[:, gpu]
            last = min(tables.groups[used], key=lambda one: ways[one])
        lead = used.bit_length() - 1 if used else HOST
        return Cut(seconds, ((HOST, end), *reversed(route)), output, frozenset(away), lead)

    def _away(self, gpu: int, begin: int, end: int, room: float) -> set[int]:
        """Layers of a span whose experts are on the host."""
        if not self.host_parts:
            return set()
        layers = [i for i in range(begin, end) if self.loads.experts[i]]
        free = room - float(self.loads.trunk[begin:end].sum())
        savings = self.prices.away[:, gpu] - self.prices.home[:, gpu]
        sizes = [int(self.loads.experts[i]) for i in layers]
        stay = knapsack(sizes, [float(savings[i]) for i in layers], free)
        return {i for i, stays in zip(layers, stay, strict=True) if not stays}


def _bits(used: int, output: int) -> int:
    """The GPUs in use, with that of the output."""
    return used if output == HOST else used | 1 << output
