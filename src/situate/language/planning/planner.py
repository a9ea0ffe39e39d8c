"""The best layout of a language model on a home, among those that flags of llama.cpp can say.

For each setting (ubatch, place of the cache, op offload) `cuts` finds the best cut of the layers by
dynamic programming, first with experts that may be divided. Those seconds are a lower bound of the
setting. Settings are tried in the order of their bounds, until none can be better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from situate.errors import PlanError, SituateError
from situate.language.cache import CacheOptions
from situate.language.home import Home
from situate.language.layout import HOST, Layout
from situate.language.memory import DeviceMemory
from situate.language.model import LanguageModel
from situate.language.planning.capacity import (
    alike,
    first_room,
    free_bytes,
    layer_loads,
    measured_room,
    memory_of,
)
from situate.language.planning.cuts import Cut, Cutter, Loads, Room
from situate.language.planning.prices import PriceList
from situate.language.planning.repair import fitting_neighbour
from situate.language.planning.workload import Speed, Workload, speed_of

UBATCHES = (512, 1024, 2048, 4096, 256, 128)
"""Ubatches to choose from; of equal ones the first is taken."""

MAX_GPUS = 8
"""Most GPUs whose orders are all tried."""

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


@dataclass(frozen=True)
class HomePlan:
    """A layout with its predicted figures.

    Attributes:
        layout: where everything is.
        options: of the cache.
        work: the workload that it is made for.
        speed: predicted seconds.
        memory: of each GPU, and of the host last.
        free: bytes of each GPU and of the host beyond the margin of the estimate.
        bound: seconds that no layout with whole layers in turn is below; None without a search.
        notes: for the user.
    """

    layout: Layout
    options: CacheOptions
    work: Workload
    speed: Speed
    memory: tuple[DeviceMemory, ...]
    free: tuple[float, ...]
    bound: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The objective."""
        return self.speed.objective

    @property
    def gap(self) -> float | None:
        """The share by which the plan may be slower than the best layout of this kind."""
        if self.bound is None:
            return None
        gap = 1 - self.bound / self.seconds
        return gap if gap > ROUNDING else 0.0

    @property
    def feasible(self) -> bool:
        """True if no device needs more memory than it has."""
        return all(
            free >= 0 or not (part.total or part.margin)
            for free, part in zip(self.free, self.memory, strict=True)
        )


@dataclass(frozen=True)
class Planner:
    """Plans of a model on a home.

    Attributes:
        model, home: for which to plan.
        options: of the cache; the planner chooses the ubatch.
        work: the workload.
        ubatches: to choose from.
        divided: also try layouts that divide every matrix over GPUs.
        required: GPUs that a plan must use, as bits.
        exact: search with exact compute buffers too, which takes several times as long.
    """

    model: LanguageModel
    home: Home
    options: CacheOptions
    work: Workload
    ubatches: tuple[int, ...] = UBATCHES
    divided: bool = True
    required: int = 0
    exact: bool = False

    def plan(self) -> HomePlan:
        """The best plan.

        Raises:
            PlanError: no layout fits.
            SituateError: the home has too many GPUs, or the context cannot be.
        """
        self.check()
        best, bound = self._search()
        if best is None:
            raise PlanError(self._misfit())
        final = self.priced(best.layout)
        if not final.feasible:
            return self._repaired(final)
        if final.layout.split == "layer":
            final = replace(final, bound=min(bound, final.seconds))
        return final

    def _repaired(self, plan: HomePlan) -> HomePlan:
        """The best plan with exact buffers, where they do not fit in one.

        Raises:
            PlanError: no layout fits.
        """
        if not self.exact:
            return replace(self, exact=True).plan()
        result = fitting_neighbour(plan, True, self.priced)
        if result is None:
            raise PlanError(self._misfit())
        return result

    def check(self) -> None:
        """
        Raises:
            SituateError: the home has too many GPUs, or the context cannot be.
        """
        if (count := len(self.home.accelerators)) > MAX_GPUS:
            raise SituateError(f"{self.home.name}: has {count} GPUs, and {MAX_GPUS} are the most")
        _check_context(self.model, self.options, self.work)

    def fits(self) -> bool:
        """True if a layout fits."""
        return any(self._solved(setting)[0] for setting in self._settings())

    def priced(self, layout: Layout, notes: tuple[str, ...] = ()) -> HomePlan:
        """The figures of a layout, whether it fits or not."""
        return self._priced(layout, notes, True, True)

    def _priced(
        self,
        layout: Layout,
        notes: tuple[str, ...] = (),
        exact: bool = False,
        growth: bool = False,
    ) -> HomePlan:
        """The figures of a layout; `exact` and `growth` as in `device_memory`."""
        options = replace(self.options, ubatch=layout.ubatch)
        memory = memory_of(self.model, layout, options, self.home, exact or self.exact, growth)
        speed = speed_of(self.model, layout, self.home, options, self.work)
        free = tuple(free_bytes(memory, self.home))
        return HomePlan(layout, options, self.work, speed, memory, free, notes=notes)

    def _search(self) -> tuple[HomePlan | None, float]:
        """The best plan, and a lower bound of the seconds of any."""
        settings = list(self._settings())
        ranked = sorted((self._bound(s), i) for i, s in enumerate(settings))
        best: HomePlan | None = None
        bounds = []
        for relaxed, i in ranked:
            if best and relaxed >= best.seconds * (1 - ROUNDING):
                bounds.append(relaxed)
                break
            plan, bound = self._solved(settings[i])
            bounds.append(max(relaxed, bound))
            best = _better(best, plan)
        for layout in self._tensor_layouts() if self.divided else ():
            plan = self._priced(layout)
            best = _better(best, plan if plan.feasible else None)
        return best, min(bounds, default=inf)

    def _settings(self) -> Iterator[Setting]:
        heads = [gpu for gpu, kind in enumerate(self.kinds) if kind == gpu]
        gpus = len(self.home.accelerators)
        for ubatch in self.ubatches:
            for host_cache in (False, True) if gpus else (True,):
                if gpus:
                    yield Setting(ubatch, host_cache, True, False, None, 1)
                for most in range(2, gpus + 1):
                    yield Setting(ubatch, host_cache, True, False, None, most)
                for head in heads:
                    yield Setting(ubatch, host_cache, True, True, head, gpus)
                yield Setting(ubatch, host_cache, not gpus, True, None, gpus)

    @cached_property
    def kinds(self) -> list[int]:
        """(GPUs,) the first GPU that each one is like."""
        return alike(self.home)

    @cached_property
    def _loads(self) -> dict[tuple[int, bool], Loads]:
        options = (replace(self.options, ubatch=ubatch) for ubatch in self.ubatches)
        return {
            (one.ubatch, host_cache): layer_loads(self.model, one, host_cache)
            for one in options
            for host_cache in (False, True)
        }

    @cached_property
    def _price_list(self) -> PriceList:
        return PriceList(self.model, self.home, self.options, self.work)

    def _bound(self, setting: Setting) -> float:
        cut = self._cutter(setting, self._room(setting), exact=False).best()
        return inf if cut is None else cut.seconds

    def _room(self, setting: Setting) -> Room:
        return first_room(
            self.model,
            self.home,
            self.options,
            self._layout(setting, Cut(0.0, ((HOST, len(self.model.layers)),), HOST)),
            setting.host_parts,
            setting.first,
            setting.most > 1,
            self.exact,
        )

    def _cutter(
        self, setting: Setting, room: Room, exact: bool = True, price: float = 0.0
    ) -> Cutter:
        """`price` is the seconds added for each byte in host memory."""
        loads = self._loads[setting.ubatch, setting.host_cache]
        first = setting.first if setting.op_offload else None
        pipelined = not (setting.host_parts or setting.host_cache)
        stages = setting.most if pipelined else 1
        prices = self._price_list.prices(setting.ubatch, setting.host_cache, first, stages)
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

    def _solved(self, setting: Setting) -> tuple[HomePlan | None, float]:
        """The best plan of a setting, and a lower bound of its seconds.

        Buffers differ a little from layout to layout. So the room that they leave is measured again
        on each plan.
        """
        room, best, bound = self._room(setting), None, inf
        for _ in range(REPAIRS):
            cutter = self._cutter(setting, room)
            cut = cutter.best()
            if cut is None:
                break
            bound = min(bound, cut.seconds if cutter.proves else -inf)
            plan = self._within_host(setting, room, self._priced(self._layout(setting, cut)))
            best = _better(best, plan if plan.feasible else None)
            following = measured_room(
                self.model, self.home, self.options, plan.layout, plan.memory, room
            )
            if not plan.feasible:
                following = following.least(room)
            if following.same(room):
                break
            room = following
        return best, bound

    def _within_host(self, setting: Setting, room: Room, plan: HomePlan) -> HomePlan:
        """A plan within the host's memory too, where a price of its bytes leads to one."""
        price = plan.seconds / max(self.model.size, 1) / 4
        for _ in range(PENALTY_STEPS):
            if plan.free[-1] >= 0:
                break
            cut = self._cutter(setting, room, price=price).best()
            if cut is None:
                break
            plan, price = self._priced(self._layout(setting, cut)), 4 * price
        return plan

    def _layout(self, setting: Setting, cut: Cut) -> Layout:
        layers: list[int] = []
        for device, end in cut.route:
            layers += [device] * (end - len(layers))
        helping = cut.away or HOST in layers
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

    def _tensor_layouts(self) -> Iterator[Layout]:
        """Layouts that divide every matrix over GPUs, by their bandwidth or equally."""
        count = len(self.model.layers)
        for group in _groups(self.kinds):
            speeds = np.array([self.home.accelerators[gpu].bandwidth for gpu in group])
            for shares in {tuple(speeds / speeds.sum()), (1 / len(group),) * len(group)}:
                ends = np.round(np.cumsum(shares) * (count + 1)).astype(int)
                places = [group[int(np.searchsorted(ends, i, "right"))] for i in range(count + 1)]
                layers = tuple(places[:-1])
                for ubatch in self.ubatches:
                    yield Layout(group, layers, layers, places[-1], False, "tensor", ubatch)

    def _misfit(self) -> str:
        """The reason why no layout fits."""
        home, layers = self.home, layer_loads(self.model, self.options, False)
        whole = self.model.size + int(self.model.cache_bytes(self.options))
        memory = sum(processor.memory for processor in home.processors)
        if whole > memory:
            return (
                f"{self.model.name} needs {_gib(whole)} with its cache, and the devices of "
                f"{home.name} have {_gib(memory)}: take a smaller type, a shorter --context "
                "or --cache-type q8_0"
            )
        largest = int((layers.trunk + layers.experts).max())
        return (
            f"{self.model.name} does not fit on {home.name}: no device has the room that is left "
            f"for the largest layer of {_gib(largest)}, or host memory is short: take a "
            "smaller type, a shorter --context or --cache-type q8_0"
        )


def _check_context(model: LanguageModel, options: CacheOptions, work: Workload) -> None:
    """
    Raises:
        SituateError: the context is longer than the model's, or shorter than the request.
    """
    context, most = options.context // options.slots, model.sizes.context
    if most and context > most:
        raise SituateError(f"--context: {context:,} tokens, and {model.name} ends at {most:,}")
    if (tokens := work.prompt + work.reply) > options.cells:
        raise SituateError(
            f"--context: {options.cells:,} tokens a slot do not hold prompt and reply of "
            f"{tokens:,}: give a longer --context, or a shorter --prompt or --reply"
        )


def _gib(size: float) -> str:
    """Bytes as `9.8 GiB`."""
    return f"{size / 2**30:,.1f} GiB"


def _better(a: HomePlan | None, b: HomePlan | None) -> HomePlan | None:
    """The faster one of two plans, the first of equal ones."""
    if a is None or b is None:
        return b if a is None else a
    return b if b.seconds < a.seconds * (1 - ROUNDING) else a


def _groups(kinds: list[int]) -> Iterator[tuple[int, ...]]:
    """Sets of at least two GPUs, of those that are alike the first ones."""
    for bits in range(1 << len(kinds)):
        group = tuple(gpu for gpu in range(len(kinds)) if bits >> gpu & 1)
        first_ones = all(
            bits >> other & 1 for gpu in group for other in range(gpu) if kinds[other] == kinds[gpu]
        )
        if len(group) > 1 and first_ones:
            yield group
