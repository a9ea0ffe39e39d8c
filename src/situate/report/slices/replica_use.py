"""The replicas of a step's parameters: who reads each, and where it is held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.problem import Problem
from situate.schedule.schedule import Schedule


@dataclass(frozen=True)
class ReplicaUse:
    """A replica of the parameters.

    Attributes:
        number: from 0.
        slices: numbers of those that read it.
        held: by device, bytes of its parameters and of what their optimiser keeps, the most first.
        updating: time that its updates take, in the graph's unit.
    """

    number: int
    slices: tuple[int, ...]
    held: dict[str, int]
    updating: float


def replica_uses(problem: Problem, schedule: Schedule) -> tuple[ReplicaUse, ...]:
    """All replicas in order; none where every parameter is there once."""
    cut = problem.graph.slices
    count = len(cut.replicas) if cut else 0
    return tuple(_use(problem, schedule, number) for number in range(count))


def _use(problem: Problem, schedule: Schedule, number: int) -> ReplicaUse:
    assert problem.graph.slices is not None
    ops = problem.graph.ops
    mine = np.array([j for j, op in enumerate(ops) if op.replica == number], np.int64)
    updates = [j for j in mine.tolist() if ops[j].phase == "update"]
    held = np.bincount(schedule.placement[mine], problem.persistent[mine], problem.d)
    return ReplicaUse(
        number,
        tuple(s for s, read in enumerate(problem.graph.slices.replica) if read == number),
        {
            problem.cluster.names[d]: int(held[d])
            for d in np.argsort(-held, kind="stable").tolist()
            if held[d]
        },
        float((schedule.end - schedule.start)[updates].sum()),
    )
