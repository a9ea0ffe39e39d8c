"""The replicas of a step's parameters, with their readers and their devices."""

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
        slices: numbers of the slices that read it.
        held: by device, bytes of its parameters and their optimiser state, the most first.
        updating: time of its updates, in the graph's unit.
    """

    number: int
    slices: tuple[int, ...]
    held: dict[str, int]
    updating: float


def replica_uses(problem: Problem, schedule: Schedule) -> tuple[ReplicaUse, ...]:
    """All replicas in order; none where every parameter exists once."""
    slices = problem.graph.slices
    count = len(slices.replicas) if slices else 0
    return tuple(_use(problem, schedule, number) for number in range(count))


def _use(problem: Problem, schedule: Schedule, number: int) -> ReplicaUse:
    assert problem.graph.slices is not None
    ops = problem.graph.ops
    replica_ops = np.array([j for j, op in enumerate(ops) if op.replica == number], np.int64)
    updates = [j for j in replica_ops.tolist() if ops[j].phase == "update"]
    sizes = np.bincount(schedule.placement[replica_ops], problem.persistent[replica_ops], problem.d)
    return ReplicaUse(
        number,
        tuple(s for s, replica in enumerate(problem.graph.slices.replica) if replica == number),
        {
            problem.cluster.names[d]: int(sizes[d])
            for d in np.argsort(-sizes, kind="stable").tolist()
            if sizes[d]
        },
        float((schedule.end - schedule.start)[updates].sum()),
    )
