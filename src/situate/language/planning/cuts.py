"""The best cut of a model's layers over devices, by dynamic programming over sets of devices.

Layers are contiguous: some on the host, then those of each GPU in some order. A layer's experts are
with it or on the host. Seconds are sums over layers, and memory is limited on each GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from situate.language.layout import HOST
from situate.language.planning.prices import Prices

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


State = tuple[int, int]
"""The GPUs in use, as bits, and the last of them; `HOST` if no layer is on a GPU yet."""


@dataclass
class _Table:
    """The least seconds of the first layers, with the way there.

    Attributes:
        least: (layers + 2,) by number of layers; the last entry has all layers, with the output on
            the last GPU.
        sources: states before this one.
        origin: (layers + 2,) the best source.
        begin: (layers + 2,) the first layer of the last GPU.
    """

    least: Floats
    sources: list[State]
    origin: Ints
    begin: Ints

    def merge(self, other: _Table) -> None:
        """Take the better one of two ways for each number of layers."""
        better = other.least < self.least
        self.origin = np.where(better, len(self.sources), self.origin)
        self.begin = np.where(better, other.begin, self.begin)
        self.least = np.minimum(other.least, self.least)
        self.sources += other.sources


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
    _inner: dict[int, Floats] = field(default_factory=dict)
    _last: dict[int, Floats] = field(default_factory=dict)
    proves: bool = True

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.loads.trunk)

    def best(self) -> Cut | None:
        """The fastest cut; None if none fits."""
        tables = self._tables()
        ends = (
            (seconds, state, output)
            for state, table in tables.items()
            for seconds, output in self._endings(state, table)
            if np.isfinite(seconds) and not self.required & ~_bits(state[0], output)
        )
        best = min(ends, default=None)
        return None if best is None else self._traced(tables, *best)

    def _endings(self, state: State, table: _Table) -> Iterator[tuple[float, int]]:
        """Seconds of all layers with each place of the output."""
        used, last = state
        if last != HOST:
            yield float(table.least[-1] + self.prices.output[last]), last
        # Without a GPU nothing computes for the host, as the prices of a first GPU have it.
        computing = bool(used) or self.first is None
        others = [HOST] if self.host_parts and computing else []
        others += [gpu for gpu in self._next(used) if self.room.output[gpu] >= 0]
        if last == HOST and used and self.room.output[used.bit_length() - 1] >= 0:
            others.append(used.bit_length() - 1)
        for output in others:
            seconds = table.least[self.count] + self.prices.crossing[last, output]
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

    def _tables(self) -> dict[State, _Table]:
        start = self._start()
        tables = {(0, HOST): start}
        if self.first is not None and not self.required and self.room.lead[self.first] >= 0:
            # The first GPU may hold no layers, and compute for the host alone.
            tables[1 << self.first, HOST] = start
        for size in range(len(self.kinds)):
            for state in [key for key in tables if key[0].bit_count() == size]:
                for gpu in self._next(state[0]):
                    key = (state[0] | 1 << gpu, gpu)
                    table = self._extended(tables[state], state, gpu)
                    if key in tables:
                        tables[key].merge(table)
                    elif np.isfinite(table.least).any():
                        tables[key] = table
        return tables

    def _start(self) -> _Table:
        """Layers on the host alone."""
        least = np.full(self.count + 2, np.inf)
        least[0] = 0.0
        if self.host_parts:
            least[1:-1] = np.cumsum(self.prices.home[:, HOST])
        nowhere = np.zeros(len(least), np.int64)
        return _Table(least, [], nowhere, nowhere)

    def _extended(self, table: _Table, state: State, gpu: int) -> _Table:
        before = table.least[:-1] + self.prices.crossing[state[1], gpu]
        totals = before[:, None] + self._segments(gpu)
        begin = totals.argmin(axis=0)
        least = np.take_along_axis(totals, begin[None], axis=0)[0]
        lasting = before[:-1] + self._segments_with_output(gpu)
        final = int(lasting.argmin())
        least, begin = np.append(least, lasting[final]), np.append(begin, final)
        return _Table(least, [state], np.zeros(len(least), np.int64), begin)

    def _segments(self, gpu: int) -> Floats:
        """(layers + 1, layers + 1) seconds of layers from the first number up to the second."""
        if gpu not in self._inner:
            self._inner[gpu] = self._priced(gpu, float(self.room.inner[gpu]))
        return self._inner[gpu]

    def _segments_with_output(self, gpu: int) -> Floats:
        """(layers,) seconds of layers from a number on to the end, beside the output."""
        if gpu not in self._last:
            self._last[gpu] = self._priced(gpu, float(self.room.last[gpu]))[:-1, -1]
        return self._last[gpu]

    def _priced(self, gpu: int, room: float) -> Floats:
        home, away = self.prices.home[:, gpu], self.prices.away[:, gpu]
        mixed = self.loads.experts > 0
        trunk = self.loads.trunk.astype(float)
        if self.host_parts:
            free = room - _spans(trunk)
            saved = self._saved(np.where(mixed, away - home, 0.0), free)
            seconds = _spans(np.where(mixed, away, home)) - saved
        else:
            free = room - _spans(trunk + self.loads.experts)
            seconds = _spans(home)
        seconds[free < 0] = np.inf
        seconds[np.tril_indices(len(seconds))] = np.inf
        return seconds

    def _saved(self, savings: Floats, free: Floats) -> Floats:
        """Seconds saved by the experts that fit beside the other tensors of each span."""
        kinds = [
            (size, saving, _spans(members))
            for size, saving, members in _classes(self.loads.experts, savings)
        ]
        if not self.exact or len(kinds) != 2:
            self.proves &= not self.exact or len(kinds) < 2
            return _filled(kinds, free, self.exact)
        # The rarer kind is counted out, the other one fills the room.
        rare, frequent = sorted(kinds, key=lambda entry: entry[2].max())
        best = np.zeros_like(free)
        for count in range(int(rare[2].max()) + 1):
            rest = free - count * rare[0]
            total = count * rare[1] + _filled([frequent], rest, True)
            valid = (rest >= 0) & (count <= rare[2])
            best = np.where(valid, np.maximum(best, total), best)
        return best

    def _traced(
        self, tables: Mapping[State, _Table], seconds: float, state: State, output: int
    ) -> Cut:
        """The cut that ends in a state."""
        route: list[tuple[int, int]] = []
        away: set[int] = set()
        place = self.count + 1 if output == state[1] != HOST else self.count
        lead = HOST
        while state[1] != HOST:
            table = tables[state]
            begin, end = int(table.begin[place]), min(place, self.count)
            room = self.room.inner if place <= self.count else self.room.last
            away |= self._away(state[1], begin, end, float(room[state[1]]))
            route.append((state[1], end))
            state, place = table.sources[int(table.origin[place])], begin
        if state[0]:
            lead = state[0].bit_length() - 1
        route.append((HOST, min(place, self.count)))
        return Cut(seconds, tuple(reversed(route)), output, frozenset(away), lead)

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


def _spans(values: Floats) -> Floats:
    """(n + 1, n + 1) sums of values from the first index up to the second."""
    ends = np.concatenate([[0.0], np.cumsum(values)])
    sums: Floats = ends[None, :] - ends[:, None]
    return sums


def _classes(sizes: Ints, savings: Floats) -> Iterator[tuple[int, float, Floats]]:
    """Layers with experts of one size and saving: both, and (layers,) 1 for each member.

    Savings that differ by rounding alone are one; a saving below zero is none.
    """
    groups: dict[tuple[int, float], list[int]] = {}
    for i, (size, saving) in enumerate(zip(sizes.tolist(), savings.tolist(), strict=True)):
        if size and saving > 0:
            groups.setdefault((size, float(f"{saving:.9e}")), []).append(i)
    for (size, _), members in groups.items():
        flags = np.zeros(len(sizes))
        flags[members] = 1.0
        yield size, float(max(savings[members])), flags


def _filled(sizes: Sequence[tuple[int, float, Floats]], free: Floats, whole: bool) -> Floats:
    """Seconds saved by filling the room with the densest savings first."""
    saved, rest = np.zeros_like(free), np.maximum(free, 0.0)
    for size, saving, members in sorted(sizes, key=lambda entry: -entry[1] / entry[0]):
        fitting = rest / size
        number = np.clip(np.floor(fitting) if whole else fitting, 0.0, np.maximum(members, 0.0))
        saved += number * saving
        rest = rest - number * size
    return saved


def knapsack(sizes: Sequence[int], values: Sequence[float], room: float) -> list[bool]:
    """The items of the largest total value that fit, exactly for up to three kinds of items.

    Of equal items it takes the later ones.
    """
    kinds: dict[tuple[int, float], list[int]] = {}
    for i, (size, value) in enumerate(zip(sizes, values, strict=True)):
        if value > 0:
            kinds.setdefault((size, float(f"{value:.9e}")), []).append(i)
    order = sorted(kinds, key=lambda kind: -kind[1] / kind[0])
    counts = _counts(order, [len(kinds[kind]) for kind in order], room)
    selection = [False] * len(sizes)
    for kind, count in zip(order, counts, strict=True):
        for i in kinds[kind][len(kinds[kind]) - count :]:
            selection[i] = True
    return selection


def _counts(
    kinds: Sequence[tuple[int, float]], most: Sequence[int], room: float
) -> tuple[int, ...]:
    """The number of each kind to take; beyond three kinds, the densest first."""
    if not kinds:
        return ()
    size, value = kinds[0]
    largest = min(most[0], int(max(room, 0.0) // size))
    if len(kinds) == 1 or len(kinds) > 3:
        return (largest, *_counts(kinds[1:], most[1:], room - largest * size))
    best, total = (0,) * len(kinds), -1.0
    for count in range(largest, -1, -1):
        rest = _counts(kinds[1:], most[1:], room - count * size)
        saved = count * value + sum(n * k[1] for n, k in zip(rest, kinds[1:], strict=True))
        if saved > total:
            best, total = (count, *rest), saved
    return best
