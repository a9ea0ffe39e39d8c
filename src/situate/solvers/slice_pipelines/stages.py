"""The line of a step of slices, and its cuts into the stages of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Bools, Floats, Ints
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors
from situate.solvers.slice_pipelines.places import NOWHERE, places
from situate.solvers.slice_pipelines.sites import Sites
from situate.solvers.slice_placement import beside, slice_of_units

HALVINGS = 40
"""Bisection steps for the seconds of the slowest stage."""

ROUNDING = 1e-9
"""Relative rounding error between equal sums of times."""


@dataclass(frozen=True, eq=False)
class Line:
    """Places along the forward pass of a slice; a stage is a segment of the line.

    Attributes:
        slices: (n,) the slice of each op; -1 for ops that run once a step.
        backward: (n,) True for ops in the backward pass of a slice.
        place: (n,) see `places`.
        of_unit: (units,) the place of each unit; a unit that runs once is beside its parameter.
        seconds: (length, sites) of all units at a place.
        persistent: (length,) persistent bytes.
        activations: (length,) bytes that forward ops of a slice make for backward ops.
        crossing: (length + 1,) bytes of all slices that cross the border before each place, in
            either direction; once for each part that reads them.
    """

    slices: Ints
    backward: Bools
    place: Ints
    of_unit: Ints
    seconds: Floats
    persistent: Floats
    activations: Floats
    crossing: Floats

    @property
    def count(self) -> int:
        """Number of slices."""
        return int(self.slices.max()) + 1


def line_of(problem: Problem, sites: Sites | None = None, slices: Ints | None = None) -> Line:
    """The line of a step.

    Args:
        sites: of the stages; None for the devices.
        slices: (n,) of each op, -1 for ops that run once a step; None for those of the graph.

    Raises:
        SituateError: the step does not slice its batch, and `slices` is missing.
    """
    if slices is None:
        slices = slice_of_units(problem)[problem.unit]
    backward = (slices >= 0) & np.array([op.phase == "backward" for op in problem.graph.ops])
    place = places(problem, slices, backward)
    of_unit, length = _of_units(problem, place), int(place.max()) + 1
    seconds = (sites or Sites.devices(problem)).seconds()
    return Line(
        slices,
        backward,
        place,
        of_unit,
        np.stack([_sums(of_unit, of_site, length) for of_site in seconds.T], axis=1),
        _sums(of_unit, problem.unit_persistent, length),
        _activations(problem, slices, backward, place, length) / (slices.max() + 1),
        _crossing(problem, slices, place, length),
    )


def _of_units(problem: Problem, place: Ints) -> Ints:
    first = np.full(problem.units, problem.n)
    on = place >= 0
    np.minimum.at(first, problem.unit[on], place[on])
    first[first == problem.n] = NOWHERE
    # A unit that exchanges no tensors may go anywhere.
    return np.maximum(0, beside(problem, first))


def _sums(place: Ints, weight: Floats | Ints, length: int) -> Floats:
    """(length,) sums of weights (k,) by their places (k,)."""
    return np.bincount(place, weight, length).astype(np.float64)


def _activations(
    problem: Problem, slices: Ints, backward: Bools, place: Ints, length: int
) -> Floats:
    """(length,) activation bytes of all slices, by place."""
    read_backward = np.zeros(len(problem.size), bool)
    read_backward[edge_tensors(problem)[backward[problem.consumers]]] = True
    maker = problem.producer
    is_activation = (
        read_backward & (slices[maker] >= 0) & ~backward[maker] & (problem.resident == 0)
    )
    return _sums(place[maker[is_activation]], problem.size[is_activation], length)


def _crossing(problem: Problem, slices: Ints, place: Ints, length: int) -> Floats:
    edges = (slices[edge_producers(problem)] >= 0) & (slices[problem.consumers] >= 0)
    tensor, reader = edge_tensors(problem)[edges], problem.consumers[edges]
    part = np.array([NOWHERE if op.part is None else op.part for op in problem.graph.ops])
    # Parts are on devices of their own, so a tensor has a copy for each part that reads it.
    keys, copy = np.unique(tensor * (part.max() + 2) + part[reader] - NOWHERE, return_inverse=True)
    tensor_of_copy = keys // (part.max() + 2)
    size = problem.size[tensor_of_copy]
    # (copies,) the first and the last place of each tensor's producer and readers.
    begin = place[problem.producer[tensor_of_copy]].copy()
    end = begin.copy()
    np.minimum.at(begin, copy, place[reader])
    np.maximum.at(end, copy, place[reader])
    crosses = end > begin
    # Differences: a tensor opens behind its first place and closes behind its last, so running sums
    # have the bytes of those open at each border.
    opened = _sums(begin[crosses] + 1, size[crosses], length + 1)
    closed = _sums(end[crosses] + 1, size[crosses], length + 1)
    return np.cumsum(opened - closed)


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights along a line for each stage on its device.

    Attributes:
        seconds: (stages, length + 1) running sums of seconds.
        bytes: (stages, length + 1) running sums of bytes.
        room: (stages,) bytes available.
    """

    seconds: Floats
    bytes: Floats
    room: Floats

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.room)

    @property
    def length(self) -> int:
        """Number of places on the line."""
        return int(self.seconds.shape[1]) - 1

    def stage_bytes(self, borders: Ints) -> Floats:
        """(stages,) bytes of each stage, given the borders (stages - 1,) between them."""
        stage = np.arange(self.stages)
        begin, end = np.append(0, borders), np.append(borders, self.length)
        return np.asarray(self.bytes[stage, end] - self.bytes[stage, begin])

    def longest(self, stage: int, begin: int, limit: float) -> int:
        """The last possible end of a stage that begins at a place, within `limit` seconds and its
        room."""
        seconds, size = self.seconds[stage], self.bytes[stage]
        by_time = np.searchsorted(seconds, seconds[begin] + limit, "right") - 1
        by_size = np.searchsorted(size, size[begin] + self.room[stage], "right") - 1
        # A stage may be empty if not even its first place fits.
        return int(max(begin, min(by_time, by_size)))

    def earliest(self, stage: int, end: int, limit: float) -> int:
        """The first possible begin of a stage that ends at a place, within `limit` seconds and its
        room."""
        seconds, size = self.seconds[stage], self.bytes[stage]
        by_time = np.searchsorted(seconds, seconds[end] - limit, "left")
        by_size = np.searchsorted(size, size[end] - self.room[stage], "left")
        return int(min(end, max(by_time, by_size)))


def weights_of(
    line: Line, sites: Ints, in_flight: Ints, room: Floats, shares: Floats | None = None
) -> Weights:
    """The weights of stages.

    Args:
        sites: (stages,) of each stage.
        in_flight: (stages,) number of slices whose activations each holds.
        room: (stages,) bytes available.
        shares: (stages,) of the seconds, which the cut should come close to; None for equal ones.
    """
    seconds = line.seconds[:, sites].T
    if shares is not None:
        seconds = seconds / shares[:, None]
    seconds = _running(seconds)
    size = _running(line.persistent + in_flight[:, None] * line.activations)
    return Weights(seconds, size, room)


def cut(line: Line, weights: Weights, slack: float) -> Ints:
    """(stages - 1,) first places of all stages but the first.

    The slowest stage takes at most `1 + slack` times its optimum. Within that limit each border in
    turn is the one that the fewest bytes cross; ties go to the most even stages. If no cut fits in
    memory, the cut ignores memory.
    """
    if not _fits(weights, np.inf):
        weights = Weights(weights.seconds, weights.bytes, np.full(weights.stages, np.inf))
    limit = _least(weights) * (1 + slack)
    borders, begin = [], 0
    starts = _earliest_starts(weights, limit)
    for stage in range(weights.stages - 1):
        last = weights.longest(stage, begin, limit)
        # Sums from the line's end may round differently from those from its beginning.
        first = min(max(begin, starts[stage + 1]), last)
        seconds = weights.seconds[stage]
        # Where the border would be if this stage and all later ones took equal seconds.
        even = seconds[begin] + (seconds[-1] - seconds[begin]) / (weights.stages - stage)
        window = np.arange(first, last + 1)
        uneven = np.abs(seconds[window] - even)
        begin = int(window[np.lexsort((uneven, line.crossing[window]))[0]])
        borders.append(begin)
    return np.array(borders, np.int64)


def _running(weight: Floats) -> Floats:
    """(stages, length + 1) running sums of weights (stages, length), from zero."""
    return np.pad(np.cumsum(weight, axis=1), ((0, 0), (1, 0)))


def _fits(weights: Weights, limit: float) -> bool:
    begin = 0
    for stage in range(weights.stages):
        begin = weights.longest(stage, begin, limit)
    return begin == weights.length


def _least(weights: Weights) -> float:
    """Least possible seconds of the slowest stage."""
    low, high = 0.0, float(weights.seconds[:, -1].max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _fits(weights, middle) else (middle, high)
    # Later sums in another order must not exceed the optimum by a rounding error.
    return high * (1 + ROUNDING)


def _earliest_starts(weights: Weights, limit: float) -> list[int]:
    """(stages,) the first place at which each stage may begin such that all later stages fit."""
    starts, end = [], weights.length
    for stage in reversed(range(weights.stages)):
        end = weights.earliest(stage, end, limit)
        starts.append(end)
    return starts[::-1]
