"""The search for the stages of least time, by Piper's dynamic program turned round.

Piper finds for each downset, number of devices and number of replicas the least time of its slowest
stage. situate fixes the time instead, and finds for each downset and number of devices the fewest
replicas with which no stage takes longer. Bisection finds the least such time. The options of a
stage's layers are a knapsack, which Piper solves greedily and situate exactly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from situate._core.sharding import DivisionOutcome, LayerArrays, StageDivision
from situate._core.sharding import Stage as DividedStage
from situate.errors import SituateError
from situate.sharding.downsets import (
    all_downsets,
    as_array,
    cheapest_cuts,
    layer_order,
    members,
    suffixes,
)
from situate.sharding.stages import (
    SYNC_FACTOR,
    LayerOption,
    Stage,
    StageFigures,
    StageProblem,
    neighbours,
)

PRECISION = 1e-9
"""Relative distance of a proved bound to the value."""

CLOSE = 1e-6
"""Relative distance of bound and value at which the next trial is just below the value."""

ENUMERATED = 40_000
"""Most downsets that are listed, as in Piper."""

ENTRIES = 10**8
"""Most entries of the table over downsets and devices."""

FEW = (50, 400, 2000)
"""Downsets with which the search begins, where there are more."""


@dataclass(frozen=True)
class StagePlan:
    """Stages of a problem's layers, and a bound of their time.

    Attributes:
        stages: the first one first; empty if none are known that fit.
        figures: time and memory of each.
        bound: no stages are faster; infinite if none fit.
        trials: times for which stages were sought.
        seconds: of the search.
        interrupted: by Ctrl-C.
    """

    stages: tuple[Stage, ...]
    figures: tuple[StageFigures, ...]
    bound: float
    trials: int
    seconds: float
    interrupted: bool = False

    @property
    def value(self) -> float:
        """Seconds per micro-batch of the slowest stage; infinite without stages."""
        return max((figures.seconds for figures in self.figures), default=math.inf)

    @property
    def feasible(self) -> bool:
        """True if there are stages; they fit in memory."""
        return bool(self.stages)

    @property
    def gap(self) -> float:
        """The difference of value and bound as a fraction of the value, zero where it is within
        the precision of the search; infinite without stages."""
        if not self.feasible:
            return math.inf
        gap = 1 - self.bound / self.value if self.value else 0.0
        return gap if gap > 2 * PRECISION else 0.0


def solve_stages(problem: StageProblem, *, time_limit: float | None = 60.0) -> StagePlan:
    """The stages whose slowest one is the fastest.

    They are optimal, to nine digits, if the gap is zero. There is a gap if the time limit ends the
    search, or if there are too many downsets. Ctrl-C ends the search with the best stages so far.

    Args:
        time_limit: seconds; None for no limit.

    Raises:
        SituateError: a negative limit.
    """
    if (time_limit or 0) < 0:
        raise SituateError("time_limit: must not be negative")
    search = _Search(problem, math.inf if time_limit is None else time_limit)
    interrupted = False
    try:
        search.run()
    except KeyboardInterrupt:
        interrupted = True
    return StagePlan(
        search.stages,
        problem.figures(search.stages) if search.stages else (),
        search.bound,
        search.trials,
        time.monotonic() - search.begin,
        interrupted,
    )


class _Search:
    """The best stages and the bound so far."""

    def __init__(self, problem: StageProblem, time_limit: float) -> None:
        self.problem = problem
        self.begin = time.monotonic()
        self.stages: tuple[Stage, ...] = ()
        self.value = math.inf
        self.bound = _work(problem) / problem.devices * (1 - PRECISION)
        self.trials = 0
        self._end = self.begin + time_limit
        self._order = layer_order(problem)

    def run(self) -> None:
        most = min(ENUMERATED, ENTRIES // (self.problem.devices + 1))
        complete = all_downsets(self.problem, self._order, most)
        downsets = complete or suffixes(self._order)
        for count in FEW:
            if count < len(downsets):
                few = cheapest_cuts(self.problem, self._order, downsets, count)
                self._bisect(few, proves=False)
        self._bisect(downsets, proves=complete is not None)

    def _bisect(self, downsets: Sequence[int], *, proves: bool) -> None:
        """Look for faster stages between these downsets, until none are.

        Args:
            proves: these are all downsets, so that failures are bounds.
        """
        division = StageDivision(_arrays(self.problem, self._order, downsets))
        floor, ceiling = self.bound, self.value
        # The best stages of fewer downsets are often the best of all: look for better ones first.
        target = _below(ceiling)
        while floor < target and (left := self._end - time.monotonic()) > 0:
            outcome = division.divide(target, time_limit=left)
            self.trials += 1
            if outcome == DivisionOutcome.stopped:
                return
            if outcome == DivisionOutcome.divided:
                self._keep(division, downsets)
                ceiling = min(ceiling, self.value)
            elif outcome == DivisionOutcome.impossible:
                floor = target
                self.bound = max(self.bound, target) if proves else self.bound
            else:
                ceiling = target
            if ceiling < self.value and ceiling - floor < CLOSE * ceiling:
                return
            target = _between(floor, ceiling)

    def _keep(self, division: StageDivision, downsets: Sequence[int]) -> None:
        stages = tuple(
            _stage(self.problem, members(downsets[s.downset], downsets[s.rest], self._order), s)
            for s in division.stages()
        )
        value = max(figures.seconds for figures in self.problem.figures(stages))
        if value < self.value:
            self.stages, self.value = stages, value


def _below(value: float) -> float:
    return value * (1 - PRECISION)


def _between(floor: float, ceiling: float) -> float:
    """Halfway between the two; a bit below the ceiling, where they are close."""
    if ceiling == math.inf or ceiling - floor < CLOSE * ceiling:
        return _below(ceiling)
    # Far apart, the geometric mean halves the number of digits between them.
    return math.sqrt(floor * ceiling) if 0 < 2 * floor < ceiling else (floor + ceiling) / 2


def _work(problem: StageProblem) -> float:
    """Device-seconds that the layers need at least for each micro-batch."""
    return math.fsum(
        min(t * option.seconds for t, options in layer.options.items() for option in options)
        for layer in problem.layers.values()
    )


def _stage(problem: StageProblem, layers: tuple[int, ...], division: DividedStage) -> Stage:
    tensor = division.tensor
    pairs = zip(layers, division.options, strict=True)
    names = tuple(problem.layers[layer].options[tensor][k].name for layer, k in pairs)
    return Stage(layers, division.data, tensor, names)


def _arrays(problem: StageProblem, order: list[int], downsets: Sequence[int]) -> LayerArrays:
    """The problem for the core."""
    degrees = _tensor_degrees(problem)
    rows = [problem.layers[layer].options.get(t, ()) for t in degrees for layer in order]
    layer_of = [layer for layer, row in zip(order * len(degrees), rows, strict=True) for _ in row]
    options = [option for row in rows for option in row]
    before, after = neighbours(problem.edges)
    ends = {layer: [*before.get(layer, ()), *after.get(layer, ())] for layer in order}
    pairs = zip(layer_of, options, strict=True)
    exchange = [_exchange(problem, layer, option, ends[layer]) for layer, option in pairs]
    place = {layer: i for i, layer in enumerate(order)}
    return LayerArrays(
        devices=problem.devices,
        most_replicas=problem.most_replicas,
        memory=problem.memory,
        sync_seconds=SYNC_FACTOR / problem.batches / problem.bandwidth,
        tensor_degrees=np.array(degrees),
        data_degrees=np.array(_data_degrees(problem)),
        # Compressed rows, one a degree and layer, of options.
        first=_starts(rows),
        seconds=np.array([option.seconds for option in options]),
        weight=np.array([option.weight_bytes for option in options]),
        batch_bytes=np.array([option.batch_bytes for option in options]),
        fixed_bytes=np.array([option.fixed_bytes for option in options]),
        # Compressed rows of neighbours by layer, and of their seconds by option.
        incident=_starts([ends[layer] for layer in order]),
        neighbour=np.array([place[other] for layer in order for other in ends[layer]], np.int64),
        exchange=_starts(exchange),
        exchange_seconds=np.array([seconds for row in exchange for seconds in row], float),
        downsets=as_array(downsets, len(order)),
    )


def _tensor_degrees(problem: StageProblem) -> list[int]:
    """Degrees of tensor parallelism that some layer has, and that the devices allow."""
    degrees = {t for layer in problem.layers.values() for t in layer.options}
    return sorted(t for t in degrees if t <= problem.devices) or [1]


def _data_degrees(problem: StageProblem) -> list[int]:
    """Numbers of replicas that divide the micro-batches."""
    return [d for d in range(1, problem.most_replicas + 1) if problem.batches % d == 0]


def _exchange(
    problem: StageProblem, layer: int, option: LayerOption, ends: Sequence[int]
) -> list[float]:
    """Seconds of the exchange with each neighbour in another stage, forward and backward."""
    sizes = [
        problem.edges[end, layer] + option.sync_in[end]
        if (end, layer) in problem.edges
        else problem.edges[layer, end] + option.sync_out[end]
        for end in ends
    ]
    return [2 * size / problem.bandwidth for size in sizes]


def _starts(rows: Sequence[Sequence[object]]) -> np.ndarray:
    return np.cumsum([0, *(len(row) for row in rows)])
