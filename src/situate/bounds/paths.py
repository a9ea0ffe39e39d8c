"""Longest paths, each op on the way where the path is shortest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate import _core
from situate.data.arrays import Floats
from situate.data.core_problem import core_problem
from situate.data.problem import Problem

PAIRS = 40_000_000
"""Pairs of devices, of all edges, that may be looked at: in half a second."""


@dataclass(frozen=True)
class Paths:
    """Longest paths, where every op runs on the device that makes them shortest and transfers
    between devices take their time; none under atomic rules, where a transfer is the load of those
    that send and receive it, or where there are more than `PAIRS` pairs of devices to look at.

    Attributes:
        head, tail: (n,) seconds before an op begins, and after it has ended.
        longest: seconds of the critical path.
    """

    head: Floats
    tail: Floats
    longest: float

    @classmethod
    def of(cls, problem: Problem) -> Paths:
        """Those of a problem's graph."""
        pairs = len(problem.consumers) * problem.d**2
        free = problem.transfers == "atomic" or pairs > PAIRS
        head, tail = _core.longest_paths(core_problem(problem), free=free)
        seconds = np.where(problem.allowed[problem.unit], problem.seconds, np.inf)
        through = (head + seconds + tail).min(axis=1)
        return cls(head.min(axis=1), tail.min(axis=1), float(through.max()))

    @classmethod
    def without(cls, problem: Problem) -> Paths:
        """None: ops that wait for nothing, as those of different steps in a pipeline."""
        return cls(np.zeros(problem.n), np.zeros(problem.n), 0.0)
