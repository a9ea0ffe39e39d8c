"""Ops in the order of the passes that they belong to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from situate.data.arrays import Ints, Order
from situate.data.problem import Problem
from situate.data.topology import places
from situate.data.weight_gradients import weight_gradients
from situate.solvers.slice_pipelines.line import Line
from situate.solvers.slice_pipelines.passes import Kind


class OpOrders:
    """Orders of the ops of a step, for any passes through any stages."""

    def __init__(self, problem: Problem, line: Line) -> None:
        self._line = line
        weights = weight_gradients(problem)
        self._ops: dict[Kind, Ints] = {
            "F": np.flatnonzero((line.slices >= 0) & ~line.backward),
            "I": np.flatnonzero(line.backward & ~weights),
            "W": np.flatnonzero(weights),
        }
        self._program = places(problem.graph.program_order)
        self._late = _late(problem, line.place)

    def order(self, ranks: Mapping[Kind, Ints], borders: Ints) -> Order:
        """(n,) ops by their pass, and within a pass in program order.

        An op that reads from no slice, such as a parameter, joins the first pass that reads it. An
        op that runs once after slices, such as an update, joins the last pass that it reads from.

        Args:
            ranks: of passes, see `ranks`.
            borders: (stages - 1,) first places of all stages but the first.
        """
        line = self._line
        stage = np.searchsorted(borders, line.place, "right")
        rank = ranks["F"].min(axis=0)[stage]
        for kind, ops in self._ops.items():
            rank[ops] = ranks[kind][line.slices[ops], stage[ops]]
        for op, producers in self._late:
            rank[op] = max((rank[other] for other in producers), default=0)
        return np.lexsort((self._program, rank)).astype(np.int32)


def _late(problem: Problem, place: Ints) -> list[tuple[int, list[int]]]:
    """Ops without a place, in the graph's order, each with the producers of its inputs."""
    producers: dict[int, list[int]] = {op: [] for op in problem.graph.order if place[op] < 0}
    for producer, reader in problem.graph.edges():
        if reader in producers:
            producers[reader].append(producer)
    return list(producers.items())
