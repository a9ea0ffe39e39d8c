"""The best layout of a language model on a home, among those that flags of llama.cpp can say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from situate.errors import PlanError, SituateError
from situate.language.cache import CacheOptions
from situate.language.home import Home
from situate.language.layer_seconds import Timetable
from situate.language.layout import HOST, Layout
from situate.language.memory import DeviceMemory
from situate.language.model import LanguageModel
from situate.language.planning.capacity import Capacity, alike, free_bytes, memory_of
from situate.language.planning.divided import best_divided
from situate.language.planning.pipelines import best_pipeline
from situate.language.planning.refinement import refined
from situate.language.planning.repair import fitting_neighbour
from situate.language.planning.search import ROUNDING, Search
from situate.language.planning.workload import Speed, Workload, speed_of

UBATCHES = (512, 1024, 2048, 4096, 256, 128)
"""Ubatches to choose from; of equal ones the first is taken."""

MAX_GPUS = 8
"""Most GPUs whose orders are all tried."""


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
        bound: seconds that no layout of the planner's kinds with whole experts is below; None
            without a search.
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
        """The share by which the plan may be slower than the best layout with whole experts."""
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
    """

    model: LanguageModel
    home: Home
    options: CacheOptions
    work: Workload
    ubatches: tuple[int, ...] = UBATCHES
    divided: bool = True
    required: int = 0

    def plan(self) -> HomePlan:
        """The best plan.

        Raises:
            PlanError: no layout fits.
            SituateError: the home has too many GPUs, or the context cannot be.
        """
        self.check()
        search = self._layouts_in_turn()
        plan, bound = self._searched(search)
        # Buffers by rules are the easier test: search again with exact ones.
        if plan is not None and not plan.feasible:
            exact, bound = self._searched(search.exactly())
            plan = exact or fitting_neighbour(plan, True, self.priced)
        if plan is None:
            raise PlanError(self._misfit())
        return self._refined(replace(plan, bound=min(bound, plan.seconds)), search)

    def _searched(self, search: Search) -> tuple[HomePlan | None, float]:
        """The plan of the best layout, and a lower bound of the seconds of any."""
        layout, bound = self._search(search)
        return None if layout is None else self.priced(layout), bound

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
        search = self._layouts_in_turn()
        small_buffers_first = sorted(search.settings(), key=lambda setting: setting.ubatch)
        return any(
            search.relaxed(setting) < inf and search.solved(setting)[0]
            for setting in small_buffers_first
        )

    def priced(self, layout: Layout, notes: tuple[str, ...] = ()) -> HomePlan:
        """The figures of a layout, whether it fits or not."""
        options = replace(self.options, ubatch=layout.ubatch)
        memory = memory_of(self.model, layout, options, self.home, exact=True, growth=True)
        speed = speed_of(self.times, layout, self.work)
        free = tuple(free_bytes(memory, self.home))
        return HomePlan(layout, options, self.work, speed, memory, free, notes=notes)

    def _search(self, search: Search) -> tuple[Layout | None, float]:
        """The best layout, and a lower bound of the seconds of any."""
        best, limit = None, inf
        work, outside = self._work_of_model()
        arguments = (search.capacity, self.times, work, self.kinds, self.ubatches)
        if self.divided:
            best, limit = best_divided(*arguments)
        pipeline, seconds = (None, inf) if self.required else best_pipeline(*arguments)
        if seconds < limit:
            best, limit = pipeline, seconds
        in_turn, bound = search.best(limit)
        return in_turn or best, min(bound, limit) + outside

    def _refined(self, plan: HomePlan, search: Search) -> HomePlan:
        """A plan that fits, with a layout that no neighbour improves."""
        layout = plan.layout
        proved = not plan.gap
        if layout.split == "tensor" or self.required or (proved and HOST not in layout.experts):
            return plan
        other = refined(layout, search.capacity.exactly(), search.seconds, proved)
        if other is layout or plan.bound is None:
            return plan
        better = self.priced(other)
        return replace(better, bound=min(plan.bound, better.seconds))

    def _work_of_model(self) -> tuple[Workload, float]:
        """The work of the model alone, and the seconds of the one that drafts."""
        work, drafting = self.work, self.work.drafting
        if drafting is None:
            return work, 0.0
        instant = replace(drafting, seconds=0.0, prefill=0.0)
        return replace(work, drafting=instant), work.drafting_seconds

    def _layouts_in_turn(self) -> Search:
        work, _ = self._work_of_model()
        return Search(self.capacity, self.times, work, self.kinds, self.ubatches, self.required)

    @cached_property
    def kinds(self) -> list[int]:
        """(GPUs,) the first GPU that each one is like."""
        return alike(self.home)

    @cached_property
    def times(self) -> Timetable:
        """Seconds of the layers."""
        return Timetable(self.model, self.home, self.options)

    @cached_property
    def capacity(self) -> Capacity:
        """Memory of the home."""
        return Capacity(self.model, self.home, self.options)

    def _misfit(self) -> str:
        """The reason why no layout fits."""
        home, layers = self.home, self.capacity.loads(self.options.ubatch, False)
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
