"""The modules of a step that run again, with their time and the memory that they free."""

from __future__ import annotations

from dataclasses import dataclass

from situate.data.problem import Problem
from situate.data.recompute import recomputed_modules
from situate.schedule.schedule import Schedule


@dataclass(frozen=True)
class RecomputeUse:
    """A module that runs again; times in the graph's unit.

    Attributes:
        module: its path.
        ops: number of ops that run again, in all slices.
        busy: the time of these ops on their devices.
        freed: bytes that the forward pass need not keep for the backward pass, in all slices.
    """

    module: str
    ops: int
    busy: float
    freed: int


def recompute_uses(problem: Problem, schedule: Schedule) -> tuple[RecomputeUse, ...]:
    """All modules that run again, in order."""
    seconds = schedule.end - schedule.start
    return tuple(
        RecomputeUse(part.module, len(part.ops), float(seconds[list(part.ops)].sum()), part.freed)
        for part in recomputed_modules(problem.graph)
    )
