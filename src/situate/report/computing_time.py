"""Computing time of each device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.errors import ScheduleError
from situate.schedule.schedule import Schedule


def computing_time(problem: Problem, schedule: Schedule) -> NDArray[np.float64]:
    """(d,) time in which a device runs at least one op."""
    ops_by_device = (schedule.placement == device for device in range(problem.d))
    return np.array([covered(schedule.start[ops], schedule.end[ops]) for ops in ops_by_device])


def covered(start: NDArray[np.float64], end: NDArray[np.float64]) -> float:
    """Length of the union of intervals; NaN where one never ends."""
    if not len(start):
        return 0.0
    if not np.isfinite(end).all():
        return float("nan")
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    # An interval adds the part of it behind the latest end before it.
    fresh = np.maximum(start[1:], reach[:-1])
    return float(end[0] - start[0] + np.maximum(end[1:] - fresh, 0).sum())


def check_times(schedule: Schedule) -> None:
    """Raise ScheduleError unless every time is finite."""
    if not np.isfinite(schedule.makespan):
        raise ScheduleError("this schedule never ends: calls of its devices wait for one another")
