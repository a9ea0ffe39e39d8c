"""The search for the best layout among those with layers in turn, and a bound of all of them.

For each setting (ubatch, place of the cache, op offload) `cuts` finds the best cut of the layers by
dynamic programming, first with experts that may be divided. Those seconds are a lower bound of the
setting. Settings are tried in the order of their bounds, until none can be better. A bound without
limits of memory comes first, because it needs no dynamic program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

import numpy as np

from situate.language.layer_seconds import Floats, Timetable
from situate.language.layout import HOST, Layout
from situate.language.planning.capacity import Capacity
from situate.language.planning.cuts import Cut, Cutter, Room
from situate.language.planning.prices import PriceList, Prices
from situate.language.planning.workload import Workload, speed_of

ROUNDING = 1e-9
"""Relative differences of seconds below this are none."""

REPAIRS = 10
"""Most times that the room of a setting is measured again."""

PENALTY_STEPS = 8
"""Most times that the price of host memory is raised."""


class Setting(NamedTuple):
    """The choices beside the cut.

    Attributes:
        ubatch, host_cache, op_offload: as in a layout.
        host_parts: some weights of layers are in host memory.
        first: the GPU that leads the order, None for any.
        most: largest number of GPUs.
    """

    ubatch: int
    host_cache: bool
    op_offload: bool
    host_parts: bool
    first: int | None
    most: int


@dataclass
class Search:
    """A search over settings.

    Attributes:
        capacity: memory of the home.
        times: seconds of layers.
        work: the workload.
        kinds: (GPUs,) the first GPU that each one is like.
        ubatches: to choose from.
        required: GPUs that a layout must use, as bits.
    """

    capacity: Capacity
    times: Timetable
    work: Workload
    kinds: Sequence[int]
    ubatches: Sequence[int]
    required: int = 0
    _prices: dict[object, Prices] = field(default_factory=dict)
    _relaxed: dict[Setting, float] = field(default_factory=dict)

    def exactly(self) -> Search:
        """The same search for layouts that fit with exact compute buffers."""
        return replace(self, capacity=self.capacity.exactly())

    def best(self, limit: float = inf) -> tuple[Layout | None, float]:
        """The fastest layout, and a lower bound of the seconds of all of them.

        Args:
            limit: only layouts with fewer seconds count.
        """
        settings = list(self.settings())
        # Best first by a cheap bound, then by a tighter one; the flag says which it is.
        queue = [(self._without_limits(setting), i, False) for i, setting in enumerate(settings)]
        heapify(queue)
        best, bounds = None, []
        while queue:
            least, i, is_relaxed = heappop(queue)
            if least >= limit * (1 - ROUNDING):
                bounds.append(least)
                break
            if not is_relaxed:
                heappush(queue, (self.relaxed(settings[i]), i, True))
                continue
            layout, seconds, bound = self.solved(settings[i], limit)
            self._relaxed[settings[i]] = max(least, bound)
            bounds.append(max(least, bound))
            if layout is not None:
                best, limit = layout, seconds
        return best, min(bounds, default=inf)

    def settings(self) -> Iterator[Setting]:
        """All settings."""
        heads = [gpu for gpu, kind in enumerate(self.kinds) if kind == gpu]
        gpus = len(self.kinds)
        for ubatch in self.ubatches:
            for host_cache in (False, True) if gpus else (True,):
                for most in range(1, gpus + 1):
                    yield Setting(ubatch, host_cache, True, False, None, most)
                for head in heads:
                    yield Setting(ubatch, host_cache, True, True, head, gpus)
                yield Setting(ubatch, host_cache, not gpus, True, None, gpus)

    def _without_limits(self, setting: Setting) -> float:
        """Seconds of a setting with every layer on its fastest device, whatever fits there."""
        prices = self._priced(setting)
        # The host is last: without its parts all devices but that.
        devices = slice(None) if setting.host_parts else slice(HOST)
        layers = prices.home[:, devices]
        if setting.host_parts:
            layers = np.minimum(layers, prices.away)
        return float(layers.min(axis=1).sum() + prices.output[devices].min())

    def relaxed(self, setting: Setting) -> float:
        """A lower bound of a setting's seconds; infinite if nothing fits."""
        if setting not in self._relaxed:
            self._relaxed[setting] = self._least_seconds(setting)
        return self._relaxed[setting]

    def _least_seconds(self, setting: Setting) -> float:
        room = self._room(setting)
        if self._overfull(setting, room):
            return inf
        cut = self._cutter(setting, room, exact=False).best()
        return inf if cut is None else cut.seconds

    def solved(self, setting: Setting, limit: float = inf) -> tuple[Layout | None, float, float]:
        """The fastest layout of a setting, its seconds, and a lower bound of them.

        Buffers differ a little from layout to layout. So the room that they leave is measured again
        on each layout. Layouts that take longer than `limit` are no result.
        """
        room, best, bound = self._room(setting), None, inf
        for _ in range(REPAIRS):
            cutter = self._cutter(setting, room)
            cut = cutter.best()
            if cut is None:
                break
            bound = min(bound, cut.seconds if cutter.proves else -inf)
            if cut.seconds >= limit * (1 - ROUNDING):
                break
            candidate = self._within_host(setting, room, self._layout(setting, cut))
            if candidate is None:
                break
            layout, beside = candidate
            fits = self.capacity.leaves_room(layout, beside)
            if fits and (seconds := self.seconds(layout)) < limit * (1 - ROUNDING):
                beside = self.capacity.beside_all(layout)
                fits = self.capacity.leaves_room(layout, beside)
                if fits:
                    best, limit = layout, seconds
            following = self.capacity.measured_room(layout, beside, room)
            if not fits:
                following = following.least(room)
            # After a layout that fits only more room can help, after another one any change of it.
            if following.within(room) if fits else following.same(room):
                break
            room = following
        return best, limit, bound

    def seconds(self, layout: Layout) -> float:
        """The objective of a layout."""
        return speed_of(self.times, layout, self.work).objective

    def _overfull(self, setting: Setting, room: Room) -> bool:
        """True if the layers are more than the devices hold."""
        loads = self.capacity.loads(setting.ubatch, setting.host_cache)
        # Room of the largest `most` GPUs.
        most = np.sort(np.maximum(room.inner, room.last).clip(min=0))[-setting.most :]
        space = most.sum() if setting.most else 0.0
        if setting.host_parts:
            model, cache = self.capacity.model, 0
            if setting.host_cache:
                everything = self.capacity.loads(setting.ubatch, False).trunk
                cache = (everything - loads.trunk).sum()
            embedding = sum(weight.size for weight in model.embedding)
            space += max(self.capacity.memory[HOST] - embedding - cache, 0.0)
        return bool((loads.trunk + loads.experts).sum() > space)

    def _room(self, setting: Setting) -> Room:
        everything = Cut(0.0, ((HOST, len(self.capacity.model.layers)),), HOST)
        probe = self._layout(setting, everything)
        several = setting.most > 1
        return self.capacity.first_room(probe, setting.host_parts, setting.first, several)

    def _cutter(
        self, setting: Setting, room: Room, exact: bool = True, price: float = 0.0
    ) -> Cutter:
        """`price` is the seconds added for each byte in host memory."""
        loads = self.capacity.loads(setting.ubatch, setting.host_cache)
        prices = self._priced(setting)
        if price:
            home, away = prices.home.copy(), prices.away.copy()
            home[:, HOST] += price * (loads.trunk + loads.experts)
            away += price * loads.experts[:, None]
            prices = replace(prices, home=home, away=away)
        return Cutter(
            prices,
            loads,
            room,
            setting.host_parts,
            setting.first,
            self.kinds,
            setting.most,
            exact,
            self.required,
        )

    def _priced(self, setting: Setting) -> Prices:
        first = setting.first if setting.op_offload else None
        pipelined = not (setting.host_parts or setting.host_cache)
        stages = setting.most if pipelined else 1
        key = setting.ubatch, setting.host_cache, first, stages
        if key not in self._prices:
            self._prices[key] = PriceList(self.times, self.work).prices(*key)
        return self._prices[key]

    def _within_host(
        self, setting: Setting, room: Room, layout: Layout
    ) -> tuple[Layout, Floats] | None:
        """A layout within the host's memory too, and the bytes of each device beside its layers.

        A rising price of the host's bytes leads to it; None if it does not.
        """
        beside = self.capacity.beside(layout)
        # At first all bytes of the model in host memory cost a quarter of the layout's seconds.
        price = self.seconds(layout) / max(self.capacity.model.size, 1) / 4
        for _ in range(PENALTY_STEPS):
            host_bytes = beside[HOST] + self.capacity.layer_bytes(layout)[HOST]
            if host_bytes <= self.capacity.memory[HOST]:
                return layout, beside
            cut = self._cutter(setting, room, price=price).best()
            if cut is None:
                break
            layout, price = self._layout(setting, cut), 4 * price
            beside = self.capacity.beside(layout)
        return None

    def _layout(self, setting: Setting, cut: Cut) -> Layout:
        layers: list[int] = []
        for device, end in cut.route:
            layers += [device] * (end - len(layers))
        helping = cut.away or HOST in layers
        # The order's first GPU computes with the host's weights.
        used = [cut.lead if helping else HOST, *(device for device, _ in cut.route), cut.output]
        order = tuple(dict.fromkeys(device for device in used if device != HOST))
        experts = [HOST if i in cut.away else device for i, device in enumerate(layers)]
        return Layout(
            order,
            tuple(layers),
            tuple(experts),
            cut.output,
            setting.host_cache and bool(order),
            "layer",
            setting.ubatch,
            setting.op_offload,
        )
