"""The slices of a step's batch, with their devices and times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.problem import Problem
from situate.schedule.schedule import Schedule


@dataclass(frozen=True)
class SliceUse:
    """The work of one slice; times in the graph's unit.

    Attributes:
        number: from 0.
        samples: of the batch.
        start, end: of its first and its last op.
        busy: by device, the time of its ops there, the most first.
    """

    number: int
    samples: int
    start: float
    end: float
    busy: dict[str, float]


def slice_uses(problem: Problem, schedule: Schedule) -> tuple[SliceUse, ...]:
    """All slices in order; none where the step takes its batch whole."""
    if problem.graph.slices is None:
        return ()
    # (n,) the slice of each op, -1 for ops that run once a step.
    part = np.array([-1 if op.slice is None else op.slice for op in problem.graph.ops])
    samples = problem.graph.slices.shares
    return tuple(_use(problem, schedule, part, s, samples[s]) for s in np.unique(part[part >= 0]))


def _use(
    problem: Problem, schedule: Schedule, part: np.ndarray, number: int, samples: int
) -> SliceUse:
    ops = np.flatnonzero(part == number)
    seconds = (schedule.end - schedule.start)[ops]
    busy = np.bincount(schedule.placement[ops], seconds, problem.d)
    in_use = (d for d in np.argsort(-busy, kind="stable").tolist() if busy[d])
    return SliceUse(
        int(number),
        samples,
        float(schedule.start[ops].min()),
        float(schedule.end[ops].max()),
        {problem.cluster.names[d]: float(busy[d]) for d in in_use},
    )
