"""The passes of a pipeline: each is a stage's forward or backward pass of one slice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from situate.data.problem import Problem
from situate.data.weight_gradients import weight_gradients
from situate.schedule.schedule import Schedule
from situate.writers.dependence import runs_forward

LATE = 0.5
"""Share of the seconds of W that has to run after all of I for the two to be passes apart."""


class Pass(NamedTuple):
    """A pass of one slice through one stage; its text is that of torch's schedules, such as `0F1`.

    The kind is F, a forward pass; B, a backward pass; or a half of a backward pass. W has the
    gradients of weights alone, and I the rest (Qi et al., *Zero Bubble Pipeline Parallelism*, ICLR
    2024), see `weight_gradients`.
    """

    stage: int
    kind: str
    slice: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.slice}"


def passes_of_ops(
    problem: Problem, stage: Sequence[int], schedule: Schedule | None
) -> list[Pass | None]:
    """(n,) the pass of each op; None for ops that run once a step.

    Args:
        stage: (n,) of each op, see `stage_of_ops`.
        schedule: splits a backward pass into halves if it runs most of W after I; None for whole
            passes.
    """
    halves = _halves(problem, stage)
    apart = set() if schedule is None else _apart(schedule, halves)
    return [half and _whole(half, apart) for half in halves]


def _whole(half: Pass, apart: set[tuple[int, int]]) -> Pass:
    """The backward pass that a half is of, unless the halves are apart."""
    keep = half.kind == "F" or (half.stage, half.slice) in apart
    return half if keep else half._replace(kind="B")


def _halves(problem: Problem, stage: Sequence[int]) -> list[Pass | None]:
    """(n,) the passes, with every backward pass in two halves."""
    weights = weight_gradients(problem)
    return [
        None
        if op.slice is None
        else Pass(stage[j], "F" if runs_forward(op) else "W" if weights[j] else "I", op.slice)
        for j, op in enumerate(problem.graph.ops)
    ]


def _apart(schedule: Schedule, halves: Sequence[Pass | None]) -> set[tuple[int, int]]:
    """Stages and slices with most of W after all of I."""
    start, end = schedule.start.tolist(), schedule.end.tolist()
    handed_on: dict[tuple[int, int], float] = defaultdict(float)
    late: dict[tuple[int, int], float] = defaultdict(float)
    for j, half in enumerate(halves):
        if half is not None and half.kind == "I":
            place = half.stage, half.slice
            handed_on[place] = max(handed_on[place], end[j])
    for j, half in enumerate(halves):
        if half is not None and half.kind == "W" and (half.stage, half.slice) in handed_on:
            place = half.stage, half.slice
            behind = (1 - LATE) if start[j] >= handed_on[place] else -LATE
            late[place] += behind * (end[j] - start[j])
    return {place for place, seconds in late.items() if seconds > 0}
