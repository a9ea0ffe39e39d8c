"""A problem as a graph to partition, and the placement of a partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import may_run, op_devices
from situate.grouping.units import UnitGraph, unit_graph

LEAST_SPEED = 1e-3
"""Least speed of a device, as a share of the fastest one's."""


@dataclass(frozen=True, eq=False)
class Mapping:
    """A problem as a graph of units to map onto devices of related speeds.

    Attributes:
        problem: the problem to map.
        devices: (k,) indices of the devices to map onto, without devices that can run nothing.
    """

    problem: Problem
    devices: NDArray[np.int64]

    @classmethod
    def onto(cls, problem: Problem, devices: list[int]) -> Mapping:
        """The mapping onto these devices; onto all usable devices if nothing can run on these."""
        useful = np.flatnonzero(problem.allowed.any(axis=0))
        usable = np.intersect1d(useful, devices)
        return cls(problem, usable if usable.size else useful)

    @cached_property
    def graph(self) -> UnitGraph:
        """The units, and the bytes between them."""
        return unit_graph(self.problem)

    @cached_property
    def load(self) -> NDArray[np.float64]:
        """(units,) seconds on the fastest of the devices; if none can run it, on the fastest of
        all."""
        best = self.problem.unit_seconds[:, self.devices].min(axis=1)
        return np.asarray(np.where(np.isfinite(best), best, self.problem.unit_seconds.min(axis=1)))

    @cached_property
    def speed(self) -> NDArray[np.float64]:
        """(k,) speed of each device: the load of the units that it can run, over its own seconds
        for them."""
        seconds = self.problem.unit_seconds[:, self.devices]
        # (units, k) -> (k,) sums over the units that a device can run.
        can = np.isfinite(seconds)
        load = np.where(can, self.load[:, None], 0.0).sum(axis=0)
        duration = np.where(can, seconds, 0.0).sum(axis=0)
        speed = np.divide(load, duration, out=np.ones_like(load), where=duration > 0)
        fastest = float(speed.max()) or 1.0
        return np.asarray(np.maximum(speed, LEAST_SPEED * fastest))

    def placement(self, processor: NDArray[np.int64]) -> Placement:
        """Placement (n,) of the ops, from the processor (units,) of each unit, below k.

        A unit that cannot run there goes to the allowed device with which it exchanges the most
        bytes. Ties go to the device that runs it fastest.
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
