"""Live tensors: their influence on feasibility, and the bytes of each op at peak memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.schedule.memory import Lives, lives, seconds, steps, sweep
from situate.schedule.schedule import Schedule


def orders_count(problem: Problem) -> bool:
    """True if the order of ops decides what fits: live tensors count, and some device cannot hold
    everything at once."""
    if problem.rules.memory == "persistent":
        return False
    everything = problem.persistent.sum() + problem.size.sum() + problem.workspace.max()
    return bool(everything > problem.capacity.min())


def weights(problem: Problem, schedule: Schedule) -> tuple[Ints, Ints]:
    """Weights (n,) of ops and the capacities (d,) that remain for them.

    A weight is the op's persistent bytes plus its output bytes that live at its device's peak. The
    capacities exclude the other bytes at the peak.
    """
    by_step = problem.rules.memory == "step"
    clock = steps(schedule, problem) if by_step else seconds(schedule)
    lived = lives(schedule, problem, clock)
    at = _fullest(problem, lived)[lived.device]
    # (lives,) bytes of each life that are live at its device's peak.
    alive = np.where((lived.birth <= at) & (at < lived.death), lived.size, 0)
    op_bytes = problem.persistent.copy()
    # Lives are workspaces (n,), then tensors on their producers' devices, then copies elsewhere.
    # Only the tensors on their producers' devices count for the op.
    np.add.at(op_bytes, problem.producer, alive[problem.n :][: len(problem.size)])
    on_device = np.zeros(problem.d, np.int64)
    np.add.at(on_device, schedule.placement, op_bytes)
    return op_bytes, problem.capacity - (schedule.peak - on_device)


def _fullest(problem: Problem, lived: Lives) -> NDArray[np.float64]:
    """(d,) the time of each device's peak; -1 for a device without tensors."""
    changes = sweep(lived)
    time = np.full(problem.d, -1.0)
    # Changes come by rising use, so the last write of a device is its peak.
    rising = np.argsort(changes.use, kind="stable")
    time[changes.device[rising]] = changes.time[rising]
    return time
