"""The line of a step of slices: what takes time, is held, kept and handed on at each place."""

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
    """Places along the forward pass of a slice, which stages are pieces of.

    Attributes:
        slices: (n,) the slice of each op, -1 of those that run once a step.
        backward: (n,) whether an op is of the backward pass of a slice.
        place: (n,) see `places`.
        of_unit: (units,) the place of each unit; what runs once stands beside its parameter.
        seconds: (length, devices) of all units at a place.
        persistent: (length,) bytes, for the whole step.
        activations: (length,) bytes that forward ops of a slice make for backward ops.
        crossing: (length + 1,) bytes that slices hand on from what is before a place to what is
            not, or back.
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
        """Slices."""
        return int(self.slices.max()) + 1


def line_of(problem: Problem) -> Line:
    """The line of a step.

    Raises:
        SituateError: it takes its batch whole.
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
    # What exchanges no tensor with anything goes anywhere.
    return np.maximum(0, beside(problem, first))


def _sums(place: Ints, weight: Floats | Ints, length: int) -> Floats:
    """(length,) sums of weights (k,) by their places (k,)."""
    return np.bincount(place, weight, length).astype(np.float64)


def _activations(
    problem: Problem, slices: Ints, backward: Bools, place: Ints, length: int
) -> Floats:
    """(length,) bytes of all slices."""
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
    # (tensors,) the first and the last place between which each is handed on.
    begin = place[problem.producer].copy()
    end = begin.copy()
    np.minimum.at(begin, tensor, place[problem.consumers[edges]])
    np.maximum.at(end, tensor, place[problem.consumers[edges]])
    apart = end > begin
    opened = _sums(begin[apart] + 1, problem.size[apart], length + 1)
    closed = _sums(end[apart] + 1, problem.size[apart], length + 1)
    return np.cumsum(opened - closed)
