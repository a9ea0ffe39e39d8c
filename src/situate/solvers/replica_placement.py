"""Placements of parameter replicas with their slices, and of the sums of their gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.data.slices import Slices

NOWHERE = -1
"""The device of a unit that is not placed yet."""


def replica_seconds(slices: Slices, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(replicas, devices) total seconds of the slices that read each replica.

    Args:
        seconds: (slices, devices) of each slice.
    """
    of_slice = np.array(slices.replica)
    total = np.zeros((int(of_slice.max()) + 1, seconds.shape[1]))
    np.add.at(total, of_slice, seconds)
    return total


def replica_devices(problem: Problem, device: Ints) -> Ints:
    """(units,) the device that runs most of the slices which read a unit's replica; -1 for units
    without a replica.

    Args:
        device: (slices,) of each slice.
    """
    of_unit = np.full(problem.units, NOWHERE)
    if (slices := problem.graph.slices) is None or not slices.replicas:
        return of_unit
    of_slice = np.array(slices.replica)
    most = [int(np.bincount(device[of_slice == r]).argmax()) for r in range(len(slices.replicas))]
    for unit, op in zip(problem.unit.tolist(), problem.graph.ops, strict=True):
        if op.replica is not None:
            of_unit[unit] = most[op.replica]
    return of_unit


def meeting_devices(problem: Problem, devices: Ints) -> Ints:
    """(units,) the device of each unit whose output updates several replicas, such as a sum of
    gradients; -1 for other units.

    The largest unit comes first, and each goes to the device with the fewest bytes of such units.
    So every device adds up a part of the gradients and sends it to all others, as an all-reduce
    does by a reduce-scatter and an all-gather.
    """
    of_unit, load = np.full(problem.units, NOWHERE), np.zeros(len(devices))
    for size, unit in sorted(_meetings(problem), key=lambda meeting: -meeting[0]):
        after = np.where(problem.allowed[unit, devices], load + size, np.inf)
        place = int(np.argmin(after))
        if np.isfinite(after[place]):
            of_unit[unit], load[place] = devices[place], after[place]
    return of_unit


def _meetings(problem: Problem) -> list[tuple[int, int]]:
    """(bytes, producing unit) of each tensor that updates several replicas."""
    ops = problem.graph.ops
    return [
        (tensor.size, int(problem.unit[tensor.producer]))
        for tensor in problem.graph.tensors
        if len({ops[op].replica for op in tensor.consumers if ops[op].phase == "update"}) > 1
    ]
