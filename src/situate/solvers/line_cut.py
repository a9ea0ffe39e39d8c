"""The network as a line of units, cut into segments, one a device; the bytes to weigh units by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import may_run, op_devices


def cut(
    problem: Problem, devices: list[int], line: Order, weight: Floats, share: Floats
) -> Placement:
    """Placement (n,) of units along a line (units,) in as many segments as there are devices, of
    which each has its share (devices,) of their weight (units,)."""
    of_unit = np.empty(problem.units, np.int64)
    of_unit[line] = np.array(devices)[segment_of_places(line, weight, share)]
    return on_devices(problem, of_unit)


def segment_of_places(line: Order, weight: Floats, share: Floats) -> NDArray[np.intp]:
    """(units,) the segment, of as many as there are shares, that every place of the line is in."""
    # (units,) weight up to the middle of each unit, and (shares,) up to the end of each segment.
    middle = np.cumsum(weight[line]) - weight[line] / 2
    ends = np.cumsum(share) / share.sum() * weight.sum()
    return np.minimum(np.searchsorted(ends, middle, side="right"), len(share) - 1)


def on_devices(problem: Problem, of_unit: NDArray[np.int64]) -> Placement:
    """Placement (n,) of units on these devices, or where they may not go, on one where they may."""
    stuck = ~may_run(problem, of_unit)
    of_unit[stuck] = problem.allowed[stuck].argmax(axis=1)
    return op_devices(problem, of_unit)


def live_bytes(problem: Problem) -> Floats:
    """(units,) bytes that a unit holds for the whole step and that its ops hand on."""
    weight = problem.unit_persistent.astype(np.float64)
    # (tensors,) bytes; a resident tensor is among the persistent bytes already.
    live = np.where(problem.resident == 1, 0, problem.size).astype(np.float64)
    np.add.at(weight, problem.unit[problem.producer], live)
    return weight
