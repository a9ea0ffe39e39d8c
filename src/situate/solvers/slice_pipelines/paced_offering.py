"""Plans of paced pipelines: several stages on each device, and updates on CPUs for more room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

import numpy as np

from situate.data.arrays import Bools, Floats, Ints, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, edge_tensors
from situate.data.weight_gradients import weight_gradients
from situate.solvers.line_cut import on_devices
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.pacing import Pace, Stages, paced_passes
from situate.solvers.slice_pipelines.passes import Kind, OpOrders, Pass
from situate.solvers.slice_pipelines.stages import Line, cut, line_of, weights_of

INTERVALS = (0.8, 0.85, 0.9, 1.0)
"""Intervals between slices as shares of the busiest device's work for one slice."""

BURSTS = (0.375, 0.5, 0.75)
"""Slices admitted at once at the start, per device."""

SPILLED = (0.0, 0.5, 0.25, 0.4, 0.6)
"""Shares of the line, from its end, whose parameters and updates are on CPUs. Gradients of the last
layers are complete first, so a CPU updates there while the accelerators still work."""

MARGINS = (0.02, 0.04, 0.06, 0.08, 0.1)
"""Shares of the room for slices that are left free, since decoding also counts, for one,
workspaces."""

MAX_RELATIVE_ERROR = 1.03
"""Largest ratio of the seconds of a plan's passes to those of its decoding."""

PACED_SHARE = 0.3
"""Largest share of the remaining budget for paced pipelines."""


def offer_paced_pipelines(search: Search) -> None:
    """Offer pipelines along several routes, with several shares of the updates on CPUs.

    Raises:
        SituateError: the step does not slice its batch.
    """
    problem = search.problem
    table = _table(problem, line_of(problem))
    of_ops = OpOrders(problem, table.line)
    end = (1 - PACED_SHARE) * search.budget.remaining()
    shares = SPILLED if len(accelerators(problem)) < problem.d else SPILLED[:1]
    for route, spilled in product(_routes(problem), shares):
        if search.finished() or search.budget.remaining() <= end:
            return
        _PacedPipeline(problem, table, of_ops, route, spilled).offer(search)


def _routes(problem: Problem) -> Iterator[Ints]:
    """Devices of the stages: the accelerators twice in the same direction, back and forth (P. Qi et
    al., *Pipeline Parallelism with Controllable Memory*, NeurIPS 2024), and once."""
    ahead = np.array(accelerators(problem))
    yield np.tile(ahead, 2)
    yield np.concatenate((ahead, ahead[::-1]))
    yield ahead


@dataclass(frozen=True, eq=False)
class _Table:
    """Seconds and bytes of the passes of a slice at each place of a line (length,).

    Attributes:
        seconds: by kind of pass; W includes sums of gradients and updates.
        held: bytes that W reads.
        sums: bytes of the gradients' sums.
        parameters: bytes of the parameters alone.
        spillable: (units,) True for units with updates.
    """

    line: Line
    seconds: dict[Kind, Floats]
    held: Floats
    sums: Floats
    parameters: Floats
    spillable: Bools


def _table(problem: Problem, line: Line) -> _Table:
    phase = np.array([op.phase for op in problem.graph.ops])
    weights, sliced, length = weight_gradients(problem), line.slices >= 0, len(line.persistent)
    seconds = np.where(np.isfinite(problem.seconds), problem.seconds, np.inf).min(axis=1)

    def sums(ops: Bools) -> Floats:
        return np.bincount(line.place[ops], seconds[ops], length) / line.count

    def sizes(tensors: Bools) -> Floats:
        at = line.of_unit[problem.unit[problem.producer[tensors]]]
        return np.bincount(at, problem.size[tensors], length).astype(np.float64)

    forward, inputs = sums(sliced & ~line.backward), sums(line.backward & ~weights)
    # All other ops of a place count as W, such as sums and updates.
    of_weights = np.maximum(0, line.seconds.min(axis=1) / line.count - forward - inputs)
    # (tensors,) activations that gradients of weights still read.
    read_late = np.zeros(len(problem.size), bool)
    read_late[edge_tensors(problem)[weights[problem.consumers]]] = True
    read_late &= sliced[problem.producer] & ~weights[problem.producer] & (problem.resident == 0)
    is_sum = ~sliced & (phase == "backward")
    return _Table(
        line,
        {"F": forward, "I": inputs, "W": of_weights},
        sizes(read_late) / line.count,
        # k slices have k - 1 sums, of which one is alive at a time.
        sizes(is_sum[problem.producer]) / max(1, line.count - 1),
        sizes(problem.resident == 1),
        np.isin(np.arange(problem.units), problem.unit[phase == "update"]),
    )


class _PacedPipeline:
    """A pipeline along a route of devices, with a share of the updates on CPUs."""

    def __init__(
        self, problem: Problem, table: _Table, of_ops: OpOrders, route: Ints, spilled: float
    ) -> None:
        self._problem, self._table, self._of_ops, self._route = problem, table, of_ops, route
        line, self._devices = table.line, np.unique(route)
        none = np.zeros(len(route), np.int64)
        self._borders = cut(line, weights_of(line, route, none, np.full(len(route), np.inf)), 0.0)
        self._on_cpu = np.arange(len(line.persistent)) >= (1 - spilled) * len(line.persistent)

    def offer(self, search: Search) -> None:
        """Offer the fastest pace for each margin of memory, if it may beat the incumbent."""
        placement = self._placement()
        for margin in MARGINS:
            seconds, passes = self._fastest(self._stages(margin))
            best = search.incumbent
            if search.finished() or (best.feasible and seconds >= MAX_RELATIVE_ERROR * best.value):
                continue
            if passes:
                order = self._of_ops.order(self._ranks(passes), self._borders)
                search.consider(placement, order, "serial")

    def _fastest(self, stages: Stages) -> tuple[float, list[Pass]]:
        """(seconds, passes) at the best pace."""
        slices = self._table.line.count
        work = np.zeros(len(self._devices))
        np.add.at(work, list(stages.device), np.sum(list(stages.seconds.values()), axis=0))
        paces = [
            Pace(interval * float(work.max()), max(1, round(burst * len(work))))
            for interval, burst in product(INTERVALS, BURSTS)
        ]
        return min((paced_passes(stages, slices, pace) for pace in paces), key=itemgetter(0))

    def _stages(self, margin: float) -> Stages:
        table, line = self._table, self._table.line
        device = np.searchsorted(self._devices, self._route).tolist()
        # Where a CPU updates, parameters alone stay with the device.
        lasting = np.where(self._on_cpu, table.parameters, line.persistent) + table.sums
        held = np.minimum(table.held, line.activations)
        capacity = self._problem.capacity[self._devices]
        lasting_bytes = np.bincount(device, self._of_stages(lasting), len(capacity))
        return Stages(
            device,
            {kind: self._of_stages(s).tolist() for kind, s in table.seconds.items()},
            self._of_stages(line.activations).tolist(),
            self._of_stages(held).tolist(),
            ((1 - margin) * (capacity - lasting_bytes)).tolist(),
        )

    def _of_stages(self, weight: Floats) -> Floats:
        stage = np.searchsorted(self._borders, np.arange(len(weight)), "right")
        return np.bincount(stage, weight, len(self._route)).astype(np.float64)

    def _placement(self) -> Placement:
        problem, place = self._problem, self._table.line.of_unit
        of_unit = self._route[np.searchsorted(self._borders, place, "right")]
        cpus = np.flatnonzero(~problem.accelerators)
        if len(cpus):
            # (devices,) the CPU behind each device's fastest link.
            nearest = cpus[problem.bandwidth[:, cpus].argmax(axis=1)]
            moves = self._table.spillable & self._on_cpu[place]
            of_unit = np.where(moves, nearest[of_unit], of_unit)
        return on_devices(problem, of_unit)

    def _ranks(self, passes: list[Pass]) -> dict[Kind, Ints]:
        shape = (self._table.line.count, len(self._route))
        ranks: dict[Kind, Ints] = {kind: np.zeros(shape, np.int64) for kind in ("F", "I", "W")}
        for rank, (kind, part, stage) in enumerate(passes):
            ranks[kind][part, stage] = rank
        return ranks
