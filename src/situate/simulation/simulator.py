"""The simulator: step times, peaks and schedules of placements and priorities, by the C++ core."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.core_problem import core_problem
from situate.data.placements import check_devices, rows
from situate.data.problem import Problem
from situate.host.machine import usable_cpus
from situate.schedule.schedule import Schedule

Decoder = Literal["eager", "serial"]


class Simulator:
    """Evaluates decisions on one problem; see docs/execution-model.md for the two decoders.

    Args:
        problem: of n ops, m tensors and d devices.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.core = core_problem(problem)

    def __reduce__(self) -> tuple[type[Simulator], tuple[Problem]]:
        """Pickle the problem alone; the process that loads it makes the core again."""
        return type(self), (self.problem,)

    def evaluate(
        self,
        placements: NDArray[np.int32],
        priorities: NDArray[np.float32],
        transfer_priorities: NDArray[np.float32] | None = None,
        decoder: Decoder = "eager",
        threads: int | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Makespans (k,) in seconds and peaks (k, d) in bytes of k decisions.

        Args:
            placements: (k, n) device indices.
            priorities: (k, n) finite; higher goes first.
            transfer_priorities: (k, m, d), or None for the best consumer's priority.
            decoder: `eager` or `serial`.
            threads: at most this many; None for all CPUs. The result does not depend on it.

        Raises:
            ValueError: arrays of the wrong shape, placements that are no integers, a device that
                does not exist, priorities that are not finite, or fewer threads than one.
        """
        decisions = self._decisions(placements, priorities, transfer_priorities)
        return _core.simulation.evaluate(self.core, *decisions, decoder, threads or usable_cpus())

    def makespans(
        self,
        placements: NDArray[np.int32],
        priorities: NDArray[np.float32],
        transfer_priorities: NDArray[np.float32] | None = None,
        decoder: Decoder = "eager",
        threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Makespans (k,) in seconds of k decisions, as in `evaluate`, without the work for peaks.

        Args, Raises:
            As `evaluate`.
        """
        decisions = self._decisions(placements, priorities, transfer_priorities)
        return _core.simulation.makespans(self.core, *decisions, decoder, threads or usable_cpus())

    def _decisions(
        self,
        placements: object,
        priorities: NDArray[np.float32],
        transfer_priorities: NDArray[np.float32] | None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32] | None]:
        """Decisions as arrays that the core takes."""
        if transfer_priorities is not None:
            transfer_priorities = np.ascontiguousarray(transfer_priorities, np.float32)
        of_ops = np.ascontiguousarray(priorities, np.float32)
        return self.as_devices(placements), of_ops, transfer_priorities

    def schedule(
        self,
        placement: NDArray[np.int32],
        priority: NDArray[np.float32],
        transfer_priority: NDArray[np.float32] | None = None,
        decoder: Decoder = "eager",
    ) -> Schedule:
        """The schedule of a placement (n,) and priorities (n,) of ops and (m, d) of transfers."""
        transfers = None if transfer_priority is None else transfer_priority[None]
        devices, priorities, transfers = self._decisions([placement], priority, transfers)
        result = _core.simulation.schedule(self.core, devices[0], priorities, transfers, decoder)
        return Schedule(devices[0], *result, decoder)

    def as_devices(self, placements: object) -> NDArray[np.int32]:
        """Placements (k, n) as 32-bit integers. The core checks the devices of such integers; other
        numbers are checked here, because a cast could turn them into valid devices."""
        devices = rows(placements, self.problem.n, "placements")
        if devices.dtype == np.int32:
            return np.ascontiguousarray(devices)
        return check_devices(self.problem, devices, lambda row: f"placement {row}: ")
