"""Longest paths, with each op on its best device for the path, and their joins."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from situate import _core
from situate.data.arrays import Floats
from situate.data.core_problem import core_problem
from situate.data.problem import Problem

PAIRS = 40_000_000
"""Most pairs of devices, over all edges, that longest paths may visit; takes half a second."""

STEPS_PER_SECOND = 4e7
"""Pairs of devices, or ops on a device, that longest paths visit in a second at least."""


@dataclass(frozen=True)
class Paths:
    """Longest paths, with each op on the device that makes them shortest.

    Transfers between devices take their time. They take none under atomic rules, where they are
    load of the sender and the receiver, or if there are more than `PAIRS` pairs of devices.

    Attributes:
        heads, tails: (n, d) seconds before an op starts on a device, and after it ends there;
            infinite on forbidden devices.
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
    def of(cls, problem: Problem, core: _core.problem.Problem | None = None) -> Paths:
        """The paths of a problem's graph.

        Args:
            problem: with n ops on d devices.
            core: the core's copy of the problem, if there is one.
        """
        core, free = core or core_problem(problem), _transfers_are_free(problem)
        return cls.through(problem, *_core.bounds.longest_paths(core, free=free))

    @classmethod
    def through(cls, problem: Problem, heads: Floats, tails: Floats) -> Paths:
        """The paths with these seconds before and after each op, (n, d) and (n, d)."""
        through = np.where(problem.allowed[problem.unit], problem.seconds, np.inf)
        through += heads  # in place: a sum of arrays would be the search's largest use of memory
        through += tails
        return cls(heads, tails, float(through.min(axis=1).max()))

    @classmethod
    def without(cls, problem: Problem) -> Paths:
        """Empty paths, for ops without dependencies, as of different steps in a pipeline."""
        nothing = np.zeros((problem.n, problem.d))
        return cls(nothing, nothing, 0.0)


def _transfers_are_free(problem: Problem) -> bool:
    """True if the longest paths of a problem leave out the time of transfers."""
    return problem.transfers == "atomic" or len(problem.consumers) * problem.d**2 > PAIRS


def expected_seconds(problem: Problem) -> float:
    """Expected seconds of `Paths.of`, from above."""
    edges = len(problem.consumers) * (1 if _transfers_are_free(problem) else problem.d)
    return (edges + problem.n) * problem.d / STEPS_PER_SECOND


# Joins: an op can start early only on the device of the inputs whose transfers would come too
# late. The producers of these inputs run on that device one after the other. C. Papadimitriou, M.
# Yannakakis, "Towards an Architecture-Independent Analysis of Parallel Algorithms", SIAM Journal
# on Computing 19(2), 1990, for ops, transfers and devices that differ.
WORK = 20_000_000
"""Edges that are looked at for the sake of others, in a fifth of a second or so."""


def with_joins(
    problem: Problem,
    paths: Paths,
    until: float = math.inf,
    core: _core.problem.Problem | None = None,
) -> Paths:
    """The paths, with longer heads and tails at joins.

    Args:
        problem: of the paths.
        paths: as they are without joins.
        until: time of `time.perf_counter` at which the search for joins ends.
        core: the core's copy of the problem, if there is one.
    """
    seconds = until - time.perf_counter()
    if seconds <= 0 or problem.d < 2:
        return paths
    heads, tails = _core.bounds.with_joins(
        core or core_problem(problem), paths.heads, paths.tails, work=WORK, seconds=seconds
    )
    return Paths.through(problem, heads, tails)
