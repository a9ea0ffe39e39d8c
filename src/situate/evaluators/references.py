"""Seconds of workers that differ, made comparable by the reference step that each measured."""

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
"""Ratio of two reference times up to which workers count as equally fast: they are known no better,
and a ratio that is noise would favour what one of them measures."""


class References:
    """The reference times of a search's workers.

    Args:
        workers_met: the workers that measured so far, the first of them first.
    """

    def __init__(self, workers_met: Sequence[Origin] = ()) -> None:
        self._first = workers_met[0].reference if workers_met else None

    def normalise(self, measurements: Measurements) -> Measurements:
        """Measurements as the first worker would have made them: seconds of a worker that needs
        twice its time for the reference step are halved."""
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


MIN_OP_SECONDS = 1e-12
"""Seconds that every op counts as more: a graph may say that none takes any."""


def reference_placement(problem: Problem) -> Placement:
    """Placement (n,): stretches of the network of about equal work, one on each accelerator, so
    that all of them tell; where that does not fit, everything on the first device on which it
    does."""
    candidates = np.array(
        [_balanced_stretches(problem), *_one_device_placements(problem)], np.int32
    )
    order = priority_of(np.array(problem.graph.order, np.int32))
    _, peak = step_times(Simulator(problem), candidates, order, threads=1)
    fits = (peak <= problem.capacity).all(axis=1)
    return np.asarray(candidates[int(fits.argmax())], np.int32)


def _balanced_stretches(problem: Problem) -> Placement:
    devices = np.array(accelerators(problem))
    work = np.zeros(problem.units)
    np.add.at(work, problem.unit, problem.seconds.min(axis=1) + MIN_OP_SECONDS)
    line = pipeline_order(problem)
    middle = np.cumsum(work[line]) - work[line] / 2
    of_unit = np.empty(problem.units, np.int32)
    of_unit[line] = devices[(middle / work.sum() * len(devices)).astype(int)]
    return _allowed(problem, of_unit)


def _one_device_placements(problem: Problem) -> list[Placement]:
    return [
        _allowed(problem, np.full(problem.units, device, np.int32)) for device in range(problem.d)
    ]


def _allowed(problem: Problem, of_unit: NDArray[np.int32]) -> Placement:
    """With units that may not run there on the first device that they may run on."""
    there = problem.allowed[np.arange(problem.units), of_unit]
    return op_devices(problem, np.where(there, of_unit, problem.allowed.argmax(axis=1)))
