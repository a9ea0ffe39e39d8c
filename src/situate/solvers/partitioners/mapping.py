"""A problem as a graph to partition, and the placement that a partition stands for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import may_run, op_devices
from situate.grouping.unit_graph import UnitGraph, unit_graph

LEAST_SPEED = 1e-3
"""Least speed of a device, as a share of the fastest one's."""


@dataclass(frozen=True, eq=False)
class Mapping:
    """A problem as a graph of units to map onto devices of related speeds.

    Attributes:
        problem: what is mapped.
        devices: (k,) indices of the devices to map onto, those left out on which nothing can run.
    """

    problem: Problem
    devices: NDArray[np.int64]

    @classmethod
    def onto(cls, problem: Problem, devices: list[int]) -> Mapping:
        """Onto these devices; onto all where nothing can run on these."""
        useful = np.flatnonzero(problem.allowed.any(axis=0))
        usable = np.intersect1d(useful, devices)
        return cls(problem, usable if usable.size else useful)

    @cached_property
    def graph(self) -> UnitGraph:
        """The units, and the bytes between them."""
        return unit_graph(self.problem)

    @cached_property
    def load(self) -> NDArray[np.float64]:
        """(units,) seconds on the fastest of the devices; of all, where none of them can."""
        best = self.problem.unit_seconds[:, self.devices].min(axis=1)
        return np.asarray(np.where(np.isfinite(best), best, self.problem.unit_seconds.min(axis=1)))

    @cached_property
    def speed(self) -> NDArray[np.float64]:
        """(k,) how fast a device is: the load of what it can run over the seconds it takes."""
        seconds = self.problem.unit_seconds[:, self.devices]
        # (units, k) -> (k,): over units that a device can run, their load over its own seconds.
        can = np.isfinite(seconds)
        load = np.where(can, self.load[:, None], 0.0).sum(axis=0)
        duration = np.where(can, seconds, 0.0).sum(axis=0)
        speed = np.divide(load, duration, out=np.ones_like(load), where=duration > 0)
        fastest = float(speed.max()) or 1.0
        return np.asarray(np.maximum(speed, LEAST_SPEED * fastest))

    def placement(self, processor: NDArray[np.int64]) -> Placement:
        """Placement (n,) of the ops, from the processor (units,), of k, of each unit.

        A unit that may not or cannot run there goes, of the devices it may use, to the one with
        which it shares most bytes, and of equal ones to the one that runs it fastest.
        """
        device = self.devices[processor]
        allowed = self.problem.allowed
        for unit in np.flatnonzero(~may_run(self.problem, device)).tolist():
            arcs = slice(self.graph.start[unit], self.graph.start[unit + 1])
            # (d,) bytes that the unit exchanges with units on each device.
            shared = np.bincount(
                device[self.graph.neighbour[arcs]], self.graph.bytes[arcs], self.problem.d
            )
            may = np.flatnonzero(allowed[unit])
            # The last key counts first: most bytes shared, then fewest seconds.
            device[unit] = may[np.lexsort((self.problem.unit_seconds[unit, may], -shared[may]))[0]]
        return op_devices(self.problem, device)
