"""The schedule that users hold: its arrays, its figures and its verification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.errors import ScheduleError
from situate.schedule import load as throughput
from situate.schedule import verify
from situate.schedule.arrays import ScheduleArrays
from situate.validation import check


@dataclass(frozen=True, eq=False)
class Schedule(ScheduleArrays):
    """The times and places of a step, with derived figures.

    Its attributes are those of `ScheduleArrays`: `placement`, `start`, `end`, `tensor`, `source`,
    `target`, `transfer_start`, `transfer_end`, `sequence`, `makespan`, `peak` and `decoder`. A
    problem with another number of ops or devices raises `ScheduleError`.
    """

    def _check_of(self, problem: Problem) -> None:
        check(problem, Problem, "problem", ScheduleError)
        of_schedule, of_problem = (len(self.placement), len(self.peak)), (problem.n, problem.d)
        if of_schedule != of_problem:
            raise ScheduleError(
                f"the schedule is of {of_schedule[0]} ops on {of_schedule[1]} devices, and the "
                f"problem has {of_problem[0]} on {of_problem[1]}"
            )

    def __repr__(self) -> str:
        moved = f"{len(self.start):,} ops, {len(self.tensor):,} transfers"
        return f"<Schedule: {moved}, makespan {self.makespan:.6g}>"

    def verify(self, problem: Problem, allow_overflow: bool = False) -> None:
        """Replay the schedule from its own times, by docs/execution-model.md.

        The check shares no code with the simulator. Copied times must be equal; sums agree to a
        relative 1e-9. Priorities are unknown here, so the order of requests at one instant is not
        checked.

        Args:
            problem: of the schedule.
            allow_overflow: accept peaks above the devices' capacities.

        Raises:
            ScheduleError: the first violation, in one line.
        """
        check(problem, Problem, "problem", ScheduleError)
        verify.verify(self, problem, allow_overflow)

    def busy(self, problem: Problem) -> NDArray[np.float64]:
        """(d,) seconds each device works: its ops, in blocking mode also its transfers.

        Under atomic rules the load of the device.
        """
        self._check_of(problem)
        return throughput.device_seconds(self, problem)

    def channel_busy(self, problem: Problem) -> NDArray[np.float64]:
        """(c,) seconds of the transfers on each of `Cluster.channels`."""
        self._check_of(problem)
        return throughput.channel_seconds(self, problem)

    def period(self, problem: Problem) -> float:
        """Seconds between steps in steady pipelined operation: the objective `throughput`."""
        self._check_of(problem)
        return throughput.period(self, problem)

    def overflow(self, problem: Problem) -> NDArray[np.int64]:
        """(d,) bytes by which the peak of each device exceeds its capacity."""
        self._check_of(problem)
        return np.asarray(np.maximum(self.peak - problem.capacity, 0), np.int64)

    def excess(self, problem: Problem) -> int:
        """Bytes by which all devices together exceed their capacities; the sum may need more than
        64 bits."""
        return sum(self.overflow(problem).tolist())

    def feasible(self, problem: Problem) -> bool:
        """True if no device's peak exceeds its capacity."""
        return not self.overflow(problem).any()
