"""A level: a problem of far fewer ops, and plans carried over to it and back."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import places
from situate.simulation.decoding import order_of
from situate.solvers.auto.coarse.contraction import contracted
from situate.solvers.auto.coarse.runs import op_line, run_labels
from situate.solvers.incumbent import Candidate


class Level:
    """Runs of ops as the ops of a coarse problem.

    Args:
        problem: the fine problem.
        runs: their number, at least; see `run_labels`.
        placement: (n,) every run has one device of it; None for runs of any ops.
    """

    def __init__(self, problem: Problem, runs: int, placement: Placement | None = None) -> None:
        kind = _device_sets(problem)
        if placement is not None:
            kind = kind * problem.d + placement
        self._fine, self._line = problem, op_line(problem)
        self._label = run_labels(problem, self._line, runs, kind)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return int(self._label.max()) + 1

    def problem(self) -> Problem:
        """The coarse problem."""
        return contracted(self._fine, self._label)

    def coarse_plan(self, candidate: Candidate) -> tuple[Placement, Order]:
        """Placement and order (runs,) of a fine plan; runs come in the order of their mean start.

        Each run must have one device.
        """
        placement = np.empty(self.runs, np.int32)
        placement[self._label] = candidate.placement
        start = np.bincount(self._label, candidate.schedule.start) / np.bincount(self._label)
        return placement, np.argsort(start, kind="stable").astype(np.int32)

    def fine_plan(self, coarse: Problem, candidate: Candidate) -> tuple[Placement, Order]:
        """Placement and order (n,) of a coarse plan: run after run, each along the line."""
        placement = candidate.placement[self._label]
        place = places(order_of(coarse, candidate.schedule))[self._label]
        return placement, np.lexsort((places(self._line), place)).astype(np.int32)


def _device_sets(problem: Problem) -> Ints:
    """(n,) a number for each set of devices that ops may run on."""
    if problem.runnable.all():
        return np.zeros(problem.n, np.int64)
    _, number = np.unique(problem.runnable, axis=0, return_inverse=True)
    return np.asarray(number.reshape(-1)[problem.unit])
