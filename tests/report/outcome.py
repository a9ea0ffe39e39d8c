"""Results of no search, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from situate.data.problem import Problem
from situate.results.result import Knowledge
from situate.schedule.schedule import Schedule
from tests.report.handmade import schedule


@dataclass(frozen=True)
class Outcome:
    """The part of a `situate.Result` that a report reads."""

    problem: Problem
    schedule: Schedule
    method: str = "heft"
    decoder: str = "handmade"
    lower_bound: float = 2.0
    bounded_by: str | None = "load"
    evaluations: int = 1
    seconds: float = 0.25
    measured: float | None = None
    samples: tuple[float, ...] = ()
    knows: Knowledge | None = None

    @property
    def value(self) -> float:
        return self.makespan

    @property
    def judged(self) -> float:
        return self.value if self.measured is None else self.measured

    @property
    def rank(self) -> tuple[int, float, int]:
        excess = int(self.schedule.overflow(self.problem).sum())
        return excess, self.judged, len(self.devices_used)

    @property
    def gap(self) -> float:
        return self.value / self.lower_bound - 1

    @property
    def expected(self) -> float:
        """The expected time: the planned one."""
        return self.makespan

    @property
    def makespan(self) -> float:
        return self.schedule.makespan

    @property
    def feasible(self) -> bool:
        return not (self.schedule.peak > self.problem.capacity).any()

    @property
    def devices_used(self) -> list[str]:
        used = sorted(set(self.schedule.placement.tolist()))
        return [self.problem.cluster.names[device] for device in used]


def outcome(problem: Problem, placement: Sequence[int], **fields: Any) -> Any:
    return Outcome(problem, schedule(problem, placement), **fields)
