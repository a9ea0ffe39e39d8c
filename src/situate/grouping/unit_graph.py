"""The units of a problem as one weighted undirected graph, to be coarsened or cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.problem import Problem
from situate.data.topology import edge_tensors


@dataclass(frozen=True, eq=False)
class UnitGraph:
    """Units and the bytes between them, in compressed rows.

    The neighbours of unit a are `neighbour[start[a]:start[a + 1]]`, in ascending order. Rows are
    symmetric, without loops and without repeated neighbours.

    Attributes:
        start: (u + 1,) first entry of every row.
        neighbour: (e,) the unit at the other end.
        bytes: (e,) bytes between the two in both directions, never above 2^62; 0 for signals only.
        seconds: (u,) of all ops of the unit, on its fastest device.
        persistent: (u,) bytes that the unit's ops hold for the whole step.
    """

    start: NDArray[np.int64]
    neighbour: NDArray[np.int64]
    bytes: NDArray[np.int64]
    seconds: NDArray[np.float64]
    persistent: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.seconds)

    def in_core(
        self, problem: Problem, seconds: NDArray[np.float64] | None = None
    ) -> _core.partition.UnitGraph:
        """The graph as the core holds it, with the problem's devices.

        Args:
            seconds: (u,) in place of its own.
        """
        return _core.partition.UnitGraph(
            start=self.start,
            neighbour=self.neighbour,
            bytes=self.bytes,
            seconds=self.seconds if seconds is None else seconds,
            persistent=self.persistent,
            capacity=problem.capacity,
            allowed=problem.allowed.astype(np.uint8),
        )


def unit_graph(problem: Problem) -> UnitGraph:
    """The unit graph of a problem.

    A tensor's size counts once for every consuming unit, as for a transfer to that unit's device. A
    unit's seconds are those on its fastest device. A mean over devices would be the CPU's time on a
    cluster with a CPU, and say nothing about GPUs.
    """
    source, target, size = _flows(problem)
    units = problem.units
    # Each flow (f,) becomes two directed entries (2 f,), so that rows are symmetric. A pair of
    # units is one integer, so that sorting pairs sorts rows, and neighbours within a row.
    key = np.concatenate((source * units + target, target * units + source))
    pairs, place = np.unique(key, return_inverse=True)
    # Flows of the same pair add up; plain indexing would keep only the last of them.
    flow = np.zeros(len(pairs), np.int64)
    np.add.at(flow, place, np.concatenate((size, size)))
    start = np.searchsorted(pairs, np.arange(units + 1) * units)
    return UnitGraph(start, pairs % units, flow, _seconds(problem), problem.unit_persistent)


def _flows(problem: Problem) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Producing unit, consuming unit and bytes of every tensor and unit that it leaves for."""
    units = problem.units
    # tensor (edges,): the tensor of every entry of `consumers`. A tensor goes to a unit once
    # however many of its ops read it, hence unique pairs of tensor and unit.
    tensor = edge_tensors(problem)
    tensor, target = np.divmod(
        np.unique(tensor * units + problem.unit[problem.consumers].astype(np.int64)), units
    )
    source = problem.unit[problem.producer[tensor]].astype(np.int64)
    crosses = source != target
    return source[crosses], target[crosses], problem.size[tensor[crosses]]


def _seconds(problem: Problem) -> NDArray[np.float64]:
    """(units,) seconds of a unit's ops on its fastest allowed device."""
    return np.asarray(np.where(problem.allowed, problem.unit_seconds, np.inf).min(axis=1))
