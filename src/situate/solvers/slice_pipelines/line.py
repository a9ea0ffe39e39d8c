"""The line of a step of slices: seconds, persistent bytes, activations and crossing bytes by
place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Bools, Floats, Ints
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors
from situate.solvers.slice_pipelines.places import NOWHERE, places
from situate.solvers.slice_placement import beside, slice_of_units


@dataclass(frozen=True, eq=False)
class Line:
    """Places along the forward pass of a slice; a stage is a segment of the line.

    Attributes:
        slices: (n,) the slice of each op; -1 for ops that run once a step.
        backward: (n,) True for ops in the backward pass of a slice.
        place: (n,) see `places`.
        of_unit: (units,) the place of each unit; a unit that runs once is beside its parameter.
        seconds: (length, devices) of all units at a place.
        persistent: (length,) persistent bytes.
        activations: (length,) bytes that forward ops of a slice make for backward ops.
        crossing: (length + 1,) bytes of all slices that cross the border before each place, in
            either direction.
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


def line_of(problem: Problem) -> Line:
    """The line of a step.

    Raises:
        SituateError: the step does not slice its batch.
    """
    slices = slice_of_units(problem)[problem.unit]
    backward = (slices >= 0) & np.array([op.phase == "backward" for op in problem.graph.ops])
    place = places(problem, slices, backward)
    of_unit, length = _of_units(problem, place), int(place.max()) + 1
    seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)
    return Line(
        slices,
        backward,
        place,
        of_unit,
        np.stack([_sums(of_unit, of_device, length) for of_device in seconds.T], axis=1),
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
    tensor = edge_tensors(problem)[edges]
    # (tensors,) the first and the last place of each tensor's producer and readers.
    begin = place[problem.producer].copy()
    end = begin.copy()
    np.minimum.at(begin, tensor, place[problem.consumers[edges]])
    np.maximum.at(end, tensor, place[problem.consumers[edges]])
    apart = end > begin
    opened = _sums(begin[apart] + 1, problem.size[apart], length + 1)
    closed = _sums(end[apart] + 1, problem.size[apart], length + 1)
    return np.cumsum(opened - closed)
