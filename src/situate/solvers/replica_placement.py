"""Placements of the replicas of parameters: each with its slices, and gradients where they meet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.data.slices import Slices

NOWHERE = -1
"""The device of a unit that is not placed yet."""


def replica_seconds(slices: Slices, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(replicas, devices) seconds of all slices that read a replica, from those (slices, devices)
    of slices."""
    of_slice = np.array(slices.replica)
    found = np.zeros((int(of_slice.max()) + 1, seconds.shape[1]))
    np.add.at(found, of_slice, seconds)
    return found


def replica_devices(problem: Problem, device: Ints) -> Ints:
    """(units,) the device of each unit of a replica: that which runs most of the slices that read
    it; -1 of all others.

    Args:
        device: (slices,) of each slice.
    """
    found = np.full(problem.units, NOWHERE)
    if (slices := problem.graph.slices) is None or not slices.replicas:
        return found
    of_slice = np.array(slices.replica)
    most = [int(np.bincount(device[of_slice == r]).argmax()) for r in range(len(slices.replicas))]
    for unit, op in zip(problem.unit.tolist(), problem.graph.ops, strict=True):
        if op.replica is not None:
            found[unit] = most[op.replica]
    return found


def meeting_devices(problem: Problem, devices: Ints) -> Ints:
    """(units,) the device of each unit that makes what several replicas are updated with, such as
    the sum of their gradients: the largest first, each to the device with the fewest bytes of such;
    -1 of all others.

    So every device adds up a part of the gradients and sends it to all others, as in an all-reduce
    of a reduce-scatter and an all-gather.
    """
    found, load = np.full(problem.units, NOWHERE), np.zeros(len(devices))
    for size, unit in sorted(_meetings(problem), key=lambda meeting: -meeting[0]):
        after = np.where(problem.allowed[unit, devices], load + size, np.inf)
        place = int(np.argmin(after))
        if np.isfinite(after[place]):
            found[unit], load[place] = devices[place], after[place]
    return found


def _meetings(problem: Problem) -> list[tuple[int, int]]:
    """The bytes that several replicas are updated with, and the unit that makes them."""
    ops = problem.graph.ops
    return [
        (tensor.size, int(problem.unit[tensor.producer]))
        for tensor in problem.graph.tensors
        if len({ops[op].replica for op in tensor.consumers if ops[op].phase == "update"}) > 1
    ]
