"""The least memory that a plan can do with, whatever it places where."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.bounds.rounding import EPSILON
from situate.data.problem import Problem


def least_peak(problem: Problem) -> int:
    """Bytes that the fullest device must hold: an equal share, a unit, or what one op needs."""
    held = problem.unit_persistent
    # Rounded up, in integers: bytes beyond 2^53 are no exact floats.
    share = -(-int(held.sum()) // problem.d)
    return max(share, int(held.max()), _largest_op(problem))


def _largest_op(problem: Problem) -> int:
    """Inputs, outputs and workspace of an op that takes time are on its device at once, beside all
    that its unit holds.

    An op far shorter than the schedule may end at the very instant at which it starts.
    """
    if problem.rules.memory == "persistent":
        return 0
    need = problem.workspace + problem.unit_persistent[problem.unit]
    # A resident tensor is part of its unit's persistent bytes already.
    size = np.where(problem.resident == 1, 0, problem.size)
    # An op may make or read several tensors: `np.add.at` adds them all to its entry (n,).
    np.add.at(need, problem.producer, size)
    repeat = np.diff(problem.consumer_start)
    np.add.at(need, problem.consumers, np.repeat(size, repeat))
    return int(need[takes_time(problem)].max(initial=0))


def takes_time(problem: Problem) -> NDArray[np.bool_]:
    """(n,) whether a clock at an op's start shows another time at its end, whenever it starts."""
    return np.asarray(problem.fastest > EPSILON * problem.serial_seconds)
