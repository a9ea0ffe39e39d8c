"""The units of a problem: their labels, their work, and the weighted graph between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Floats
from situate.data.cluster import Device
from situate.data.problem import Problem
from situate.data.roofline import estimated_seconds
from situate.data.topology import edge_tensors


# Labels of units from properties of their ops, such as a common module.
def unit_labels(problem: Problem, keys: Sequence[Hashable]) -> NDArray[np.int64]:
    """Labels (units,) that are equal for equal keys; `keys` has one for every op, and a unit has
    the key of its first op."""
    # first (units,): units are numbered from 0, so sorted unique numbers stand at their own index.
    first = np.unique(problem.unit, return_index=True)[1]
    label: dict[Hashable, int] = {}
    return np.array([label.setdefault(keys[op], len(label)) for op in first.tolist()], np.int64)


def members(label: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Units (u,) of each label, in the order of the labels."""
    # Sorted by label, members (units,) lie in one run a label; `ends` is where the runs meet. A
    # stable sort keeps the order within a label.
    ends = np.cumsum(np.unique(label, return_counts=True)[1])[:-1]
    return np.split(np.argsort(label, kind="stable"), ends)


# The work of ops by their types and shapes alone: their seconds on one reference device,
# independent of the machine and its measurements.
REFERENCE = Device("reference", flops={"float32": 10e12}, bandwidth=500e9, launch=5e-6)
"""A GPU of round figures: 20 floating-point operations for each byte of its memory."""


def op_work(problem: Problem) -> Floats:
    """(n,) seconds of ops on `REFERENCE` by the roofline, from their FLOPs and memory traffic; in a
    graph that knows neither, one second each."""
    work = estimated_seconds(problem.graph.ops, [REFERENCE])[:, 0]
    return np.asarray(work) if work.any() else np.ones(problem.n)


def unit_work(problem: Problem) -> Floats:
    """(units,) the same of all ops of a unit together."""
    work = np.bincount(problem.unit, op_work(problem), minlength=problem.units)
    return np.asarray(work, np.float64)


# The bytes of ops by the graph's tensors alone, without FLOPs and seconds.
def op_bytes(problem: Problem) -> Floats:
    """(n,) bytes of the tensors that each op reads and writes; in a graph whose tensors are all
    empty, one byte each."""
    tensor = edge_tensors(problem)
    size = problem.size.astype(np.float64)
    result = np.bincount(problem.consumers, size[tensor], minlength=problem.n)
    result += np.bincount(problem.producer, size, minlength=problem.n)
    return np.asarray(result) if result.any() else np.ones(problem.n)


def unit_bytes(problem: Problem) -> Floats:
    """(units,) the same of all ops of a unit together."""
    total = np.bincount(problem.unit, op_bytes(problem), minlength=problem.units)
    return np.asarray(total, np.float64)


# The units of a problem as one weighted undirected graph, to be coarsened or cut.
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
