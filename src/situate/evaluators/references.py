"""The reference step, by which seconds of unequal workers become comparable.

Every worker measures the same placement when it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, op_devices, pipeline_order
from situate.evaluators.measurements import Measurements, Origin
from situate.simulation.decoding import priority_of, step_times
from situate.simulation.simulator import Simulator

MAX_EQUAL_RATIO = 1.05
"""Ratio of two reference times up to which workers count as equally fast. A smaller ratio may be
noise and would favour one of them."""


MIN_OP_SECONDS = 1e-12
"""Seconds added to every op, since a graph may say that none takes any."""


class References:
    """The reference times of a search's workers.

    Args:
        met: the workers so far, in the order of their first measurement.
    """

    def __init__(self, workers_met: Sequence[Origin] = ()) -> None:
        self._first = workers_met[0].reference if workers_met else None

    def normalise(self, measurements: Measurements) -> Measurements:
        """Measurements in seconds of the first worker: if a worker needs twice the first one's time
        for the reference step, its seconds are halved."""
        if not measurements.origins:
            return measurements
        origins = tuple(self._paced(origin) for origin in measurements.origins)
        paces = np.array([origin.pace if origin else 1.0 for origin in origins])
        return replace(measurements, seconds=measurements.seconds / paces, origins=origins)

    def _paced(self, origin: Origin | None) -> Origin | None:
        if origin is None:
            return None
        if self._first is None:
            self._first = origin.reference
        ratio = origin.reference / self._first
        return replace(
            origin, pace=1.0 if 1 / MAX_EQUAL_RATIO <= ratio <= MAX_EQUAL_RATIO else ratio
        )


def reference_placement(problem: Problem) -> Placement:
    """(n,) the placement of the reference step.

    It puts stretches of the network with about equal work on the accelerators, so every accelerator
    counts. If that does not fit, all ops go to the first device on which they fit.
    """
    candidates = np.array(
        [_balanced_stretches(problem), *_one_device_placements(problem)], np.int32
    )
    order = priority_of(np.array(problem.graph.order, np.int32))
    _, peak = step_times(Simulator(problem), candidates, order, threads=1)
    # (candidates,): the stretches come first, so argmax picks them if they fit.
    fits = (peak <= problem.capacity).all(axis=1)
    return np.asarray(candidates[int(fits.argmax())], np.int32)


def _balanced_stretches(problem: Problem) -> Placement:
    devices = np.array(accelerators(problem))
    work = np.zeros(problem.units)
    np.add.at(work, problem.unit, problem.seconds.min(axis=1) + MIN_OP_SECONDS)
    line = pipeline_order(problem)
    # A unit goes to the device whose share of the work holds the unit's middle.
    middle = np.cumsum(work[line]) - work[line] / 2
    of_unit = np.empty(problem.units, np.int32)
    # Every unit has work, so each middle lies before the end and the index below k.
    of_unit[line] = devices[(middle / work.sum() * len(devices)).astype(int)]
    return _allowed(problem, of_unit)


def _one_device_placements(problem: Problem) -> list[Placement]:
    return [
        _allowed(problem, np.full(problem.units, device, np.int32)) for device in range(problem.d)
    ]


def _allowed(problem: Problem, of_unit: NDArray[np.int32]) -> Placement:
    """The placement of units, with the first allowed device for a unit that may not run on its
    own."""
    there = problem.allowed[np.arange(problem.units), of_unit]
    return op_devices(problem, np.where(there, of_unit, problem.allowed.argmax(axis=1)))
