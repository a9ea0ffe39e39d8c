"""Live tensors: where they decide what fits, and the ops that hold them when memory is fullest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.schedule.memory import Lives, lives, seconds, steps, sweep
from situate.schedule.schedule import Schedule


def orders_count(problem: Problem) -> bool:
    """True where the order of ops decides what fits: live tensors count, and not every device could
    hold everything at once."""
    if problem.rules.memory == "persistent":
        return False
    everything = problem.persistent.sum() + problem.size.sum() + problem.workspace.max()
    return bool(everything > problem.capacity.min())


def weights(problem: Problem, schedule: Schedule) -> tuple[Ints, Ints]:
    """Ints (n,) that each op holds when its device is fullest, in persistent bytes and in tensors
    that it made; and capacities (d,) less what else lies there."""
    by_step = problem.rules.memory == "step"
    clock = steps(schedule, problem) if by_step else seconds(schedule)
    lived = lives(schedule, problem, clock)
    at = _fullest(problem, lived)[lived.device]
    # (lives,) bytes that are there when the device of each life is fullest.
    alive = np.where((lived.birth <= at) & (at < lived.death), lived.size, 0)
    op_bytes = problem.persistent.copy()
    # Lives are workspaces (n,), then tensors where they are made, then where they were sent:
    # only the middle ones are their op's own.
    np.add.at(op_bytes, problem.producer, alive[problem.n :][: len(problem.size)])
    on_device = np.zeros(problem.d, np.int64)
    np.add.at(on_device, schedule.placement, op_bytes)
    return op_bytes, problem.capacity - (schedule.peak - on_device)


def _fullest(problem: Problem, lived: Lives) -> NDArray[np.float64]:
    """When memory in use is largest (d,); before all time where a device holds no tensor."""
    changes = sweep(lived)
    time = np.full(problem.d, -1.0)
    # The last write of a device is that of its largest use.
    rising = np.argsort(changes.use, kind="stable")
    time[changes.device[rising]] = changes.time[rising]
    return time
