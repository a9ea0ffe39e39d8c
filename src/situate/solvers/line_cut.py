"""Cuts of a line of units into one segment per device, and the live bytes of units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import may_run, op_devices


def cut(
    problem: Problem, devices: list[int], line: Order, weight: Floats, share: Floats
) -> Placement:
    """Placement (n,) that cuts a line (units,) into one segment per device.

    Args:
        weight: (units,) weight of each unit.
        share: (devices,) share of the total weight that each segment has.
    """
    of_unit = np.empty(problem.units, np.int64)
    of_unit[line] = np.array(devices)[segment_of_places(line, weight, share)]
    return on_devices(problem, of_unit)


def segment_of_places(line: Order, weight: Floats, share: Floats) -> NDArray[np.intp]:
    """(units,) the segment of each place on the line; there are as many segments as shares."""
    # (units,) weight up to the middle of each unit, and (shares,) up to the end of each segment.
    middle = np.cumsum(weight[line]) - weight[line] / 2
    ends = np.cumsum(share) / share.sum() * weight.sum()
    return np.minimum(np.searchsorted(ends, middle, side="right"), len(share) - 1)


def on_devices(problem: Problem, of_unit: NDArray[np.int64]) -> Placement:
    """Placement (n,) of units on these devices; a unit that may not run there goes elsewhere."""
    stuck = ~may_run(problem, of_unit)
    of_unit[stuck] = problem.allowed[stuck].argmax(axis=1)
    return op_devices(problem, of_unit)


def live_bytes(problem: Problem) -> Floats:
    """(units,) persistent bytes of each unit plus the output bytes of its ops."""
    weight = problem.unit_persistent.astype(np.float64)
    # (tensors,) bytes; a resident tensor is among the persistent bytes already.
    live = np.where(problem.resident == 1, 0, problem.size).astype(np.float64)
    np.add.at(weight, problem.unit[problem.producer], live)
    return weight
