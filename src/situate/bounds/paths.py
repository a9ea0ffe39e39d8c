"""Longest paths, each op on the way where the path is shortest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
        heads, tails: (n, d) seconds before an op begins on a device, and after it has ended there;
            infinite where it may not run.
        longest: seconds of the critical path.
    """

    heads: Floats
    tails: Floats
    longest: float

    @cached_property
    def head(self) -> Floats:
        """(n,) seconds before an op begins, wherever it does."""
        return np.asarray(self.heads.min(axis=1))

    @cached_property
    def tail(self) -> Floats:
        """(n,) seconds after an op has ended, wherever it has."""
        return np.asarray(self.tails.min(axis=1))

    @classmethod
    def of(cls, problem: Problem) -> Paths:
        """Those of a problem's graph."""
        free = problem.transfers == "atomic" or len(problem.consumers) * problem.d**2 > PAIRS
        return cls.through(problem, *_core.longest_paths(core_problem(problem), free=free))

    @classmethod
    def through(cls, problem: Problem, heads: Floats, tails: Floats) -> Paths:
        """Those through each op, with what is before and after it (n, d), (n, d)."""
        seconds = np.where(problem.allowed[problem.unit], problem.seconds, np.inf)
        return cls(heads, tails, float((heads + seconds + tails).min(axis=1).max()))

    @classmethod
    def without(cls, problem: Problem) -> Paths:
        """None: ops that wait for nothing, as those of different steps in a pipeline."""
        nothing = np.zeros((problem.n, problem.d))
        return cls(nothing, nothing, 0.0)
