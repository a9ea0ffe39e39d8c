"""The comparison of a plan with one device alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.problem import Problem
from situate.data.topology import places
from situate.report.residency import residency
from situate.schedule.schedule import Schedule


@dataclass(frozen=True)
class SingleDevice:
    """The same ops in the same order on the best device that may run them all.

    Attributes:
        value: of the problem's objective.
        peak: bytes.
    """

    name: str
    value: float
    makespan: float
    peak: int
    fits: bool


def objective_value(problem: Problem, schedule: Schedule) -> float:
    """The schedule's seconds, bytes of its largest peak, or seconds between its steps."""
    if problem.objective == "memory":
        return float(schedule.peak.max())
    if problem.objective == "throughput":
        return schedule.period(problem)
    return float(schedule.makespan)


def single_device(problem: Problem, schedule: Schedule) -> SingleDevice | None:
    """The device with the smallest value; devices with enough memory come first.

    None where no single device may run all ops.
    """
    able = np.flatnonzero(problem.runnable.all(axis=0)).tolist()
    if not able:
        return None
    peak = _peak_alone(problem, schedule)
    alone = [_alone(problem, device, peak) for device in able]
    return min(alone, key=lambda single: (not single.fits, single.value, single.makespan))


def _alone(problem: Problem, device: int, peak: int) -> SingleDevice:
    makespan, busy = _makespan_alone(problem, device), float(problem.seconds[:, device].sum())
    value = {"time": makespan, "memory": float(peak), "throughput": busy}
    return SingleDevice(
        problem.cluster.names[device],
        value[problem.objective],
        makespan,
        peak,
        peak <= int(problem.capacity[device]),
    )


def _makespan_alone(problem: Problem, device: int) -> float:
    if problem.transfers != "atomic":
        return float(problem.seconds[:, device].sum())
    from situate.simulation.atomic import schedule_calls

    return schedule_calls(problem, np.full(problem.n, device, np.int32)).makespan


def _peak_alone(problem: Problem, schedule: Schedule) -> int:
    """Peak bytes of a single device that runs all ops in the order of their starts."""
    rank = places(problem.graph.order)
    # Of ops that start together, one without duration ends first and may feed the others.
    order = np.lexsort((rank, schedule.end, schedule.start)).astype(np.int32)
    start = places(order).astype(np.float64)
    none = np.empty(0, np.int32)
    # Each op takes one unit of time, because the peak on one device depends on the order alone.
    alone = Schedule(
        placement=np.zeros(problem.n, np.int32),
        start=start,
        end=start + 1,
        tensor=none,
        source=none,
        target=none,
        transfer_start=np.empty(0),
        transfer_end=np.empty(0),
        sequence=order,
        makespan=float(problem.n),
        peak=np.zeros(problem.d, np.int64),
        decoder=schedule.decoder,
    )
    return int(residency(problem, alone).use(0)[1].max(initial=0))
