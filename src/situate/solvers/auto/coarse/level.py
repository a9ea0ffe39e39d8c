"""A level: a problem of far fewer ops, and plans carried over to it and back."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from situate.data.arrays import Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import places
from situate.simulation.decoding import order_of
from situate.solvers.auto.coarse.contraction import contracted
from situate.solvers.auto.coarse.runs import device_sets, op_line, run_labels
from situate.solvers.incumbent import Candidate


class Level:
    """Runs of ops as the ops of a coarse problem.

    Args:
        problem: the fine problem.
        line: (n,) a topological order.
        label: (n,) the run of each op, contiguous on the line and numbered along it.
    """

    def __init__(self, problem: Problem, line: Order, label: Ints) -> None:
        self._fine, self._line, self._label = problem, line, label

    @classmethod
    def of_neighbours(
        cls, problem: Problem, runs: int, placement: Placement | None = None
    ) -> Level:
        """Neighbours on the line join.

        Args:
            runs: their number, at least; see `run_labels`.
            placement: (n,) every run has one device of it; None for runs of any ops.
        """
        kind = device_sets(problem)
        if placement is not None:
            kind = kind * problem.d + placement
        line = op_line(problem)
        return cls(problem, line, run_labels(problem, line, runs, kind))

    @property
    def runs(self) -> int:
        """Number of runs."""
        return int(self._label.max()) + 1

    def problem(self, room: float = 1.0) -> Problem:
        """The coarse problem, on devices with this share of their memory."""
        coarse = contracted(self._fine, self._line, self._label)
        if room == 1.0:
            return coarse
        devices = tuple(
            msgspec.structs.replace(device, memory=int(room * device.memory))
            if device.memory is not None
            else device
            for device in coarse.cluster.devices
        )
        return replace(coarse, cluster=replace(coarse.cluster, devices=devices))

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
        # The last key counts first: run after run, then the line within each.
        return placement, np.lexsort((places(self._line), place)).astype(np.int32)
