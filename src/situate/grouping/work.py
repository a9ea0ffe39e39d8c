"""The work of ops by their types and shapes alone: their seconds on one reference device,
independent of the machine and its measurements."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats
from situate.data.cluster import Device
from situate.data.problem import Problem
from situate.data.roofline import estimated_seconds

REFERENCE = Device("reference", flops={"float32": 10e12}, bandwidth=500e9, launch=5e-6)
"""A GPU of round figures: 20 floating-point operations for each byte of its memory."""


def op_work(problem: Problem) -> Floats:
    """(n,) seconds of ops on `REFERENCE` by the roofline, from their FLOPs and memory traffic; in a
    graph that knows neither, one second each."""
    work = estimated_seconds(problem.graph.ops, [REFERENCE])[:, 0]
    return np.asarray(work) if work.any() else np.ones(problem.n)


def unit_work(problem: Problem) -> Floats:
    """(units,) the same of all ops of a unit together."""
    work = np.bincount(problem.unit, op_work(problem), minlength=problem.units)
    return np.asarray(work, np.float64)
