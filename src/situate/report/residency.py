"""Contents of each device's memory over time: the execution model's intervals, by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.schedule import memory
from situate.schedule.items import item_order
from situate.schedule.schedule import Schedule

PERSISTENT, TENSOR, WORKSPACE = range(3)


@dataclass(frozen=True, eq=False)
class Residency:
    """Half-open intervals of memory use.

    Attributes:
        device: (i,) device index.
        start, end: (i,) on the memory clock of the rules: seconds, or, for rules per step, the
            position of an item in the order of starts.
        size: (i,) bytes.
        kind: (i,) PERSISTENT, TENSOR or WORKSPACE.
        index: (i,) the op that takes the bytes, or for a TENSOR the tensor.
        seconds: (p + 1,) the time at each position and at the end, for rules per step; else empty.
    """

    device: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    size: NDArray[np.int64]
    kind: NDArray[np.int64]
    index: NDArray[np.int64]
    seconds: NDArray[np.float64]

    def use(self, device: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Instants (u,) at which the use of `device` changes, and the bytes (u,) from then on."""
        is_here = self.device == device
        times = np.concatenate((self.start[is_here], self.end[is_here]))
        change = np.concatenate((self.size[is_here], -self.size[is_here]))
        instants, inverse = np.unique(times, return_inverse=True)
        steps = np.zeros(len(instants), np.int64)
        # Several intervals may begin or end at one instant: plain indexing would keep one of them.
        np.add.at(steps, inverse, change)
        return instants, np.cumsum(steps)

    def at(self, device: int, instant: float) -> NDArray[np.int64]:
        """Indices of the intervals that cover `instant` on `device`, largest first."""
        covers = (self.device == device) & (self.start <= instant) & (instant < self.end)
        present = np.flatnonzero(covers)
        return present[np.argsort(-self.size[present], kind="stable")]

    def time(self, instants: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds of instants of this clock."""
        if not len(self.seconds):
            return instants
        return self.seconds[instants.astype(np.int64)]


def residency(problem: Problem, schedule: Schedule) -> Residency:
    """All memory use under `schedule`, by the memory rule of the problem's rules."""
    n, m, k = problem.n, len(problem.size), len(schedule.tensor)
    clock, seconds = memory.seconds(schedule), np.empty(0)
    if problem.rules.memory == "step":
        clock, seconds = memory.steps(schedule, problem), _step_seconds(problem, schedule)
    lives = memory.lives(schedule, problem, clock)
    # Persistent bytes of a step that takes no time still need an interval that is not empty.
    last = max(float(clock.last), float(np.nextafter(0, 1)))
    device = np.concatenate((schedule.placement, lives.device))
    start = np.concatenate((np.zeros(n), lives.birth))
    end = np.concatenate((np.full(n, last), lives.death))
    size = np.concatenate((problem.persistent, lives.size))
    # `lives` has workspaces (n,), tensors at home (m,) and transferred copies (k,), in this order.
    kind = np.repeat((PERSISTENT, WORKSPACE, TENSOR), (n, n, m + k))
    index = np.concatenate((np.arange(n), np.arange(n), np.arange(m), schedule.tensor))
    is_live = (size > 0) & (end > start)
    if problem.rules.memory == "persistent":
        is_live &= kind == PERSISTENT
    return Residency(
        np.asarray(device[is_live], np.int64),
        start[is_live],
        end[is_live],
        size[is_live],
        kind[is_live],
        np.asarray(index[is_live], np.int64),
        seconds,
    )


def _step_seconds(problem: Problem, schedule: Schedule) -> NDArray[np.float64]:
    starts = np.concatenate((schedule.start, schedule.transfer_start))
    return np.append(starts[item_order(schedule, problem)], schedule.makespan)
