"""The stage of every op of a slice, and the passes of a pipeline.

A pass is the forward or backward pass of one slice through one stage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.weight_gradients import weight_gradients
from situate.report.slices.stages import NotAPipeline, Stage, model_parts
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.layers import runs_forward

# The stage of a pipeline that every op of a slice belongs to, also of ops that are in no part.
ONCE = -1
"""The stage of an op that runs once a step."""


def stage_of_ops(graph: Graph, stages: Sequence[Stage]) -> list[int]:
    """(n,) the stage of each op of a slice; `ONCE` for all others.

    In the forward pass, an op in no part, such as of the loss, joins its last input; in the
    backward pass, its first. An op without inputs joins its reader. A counter, which has no reader,
    joins the first stage.
    """
    parts = model_parts(graph)
    number = {path: i for i, stage in enumerate(stages) for path in stage.parts}
    of_part = [number[path] for path in parts.paths]
    stage_numbers = [
        of_part[part] if op.slice is not None and part >= 0 else ONCE
        for op, part in zip(graph.ops, parts.of_op, strict=True)
    ]
    inputs, outputs = neighbours(graph)
    _fill(graph, stage_numbers, graph.order, inputs, reads=True)
    _fill(graph, stage_numbers, reversed(graph.order), outputs, reads=False)
    return [
        0 if stage == ONCE and op.slice is not None else stage
        for op, stage in zip(graph.ops, stage_numbers, strict=True)
    ]


def neighbours(graph: Graph) -> tuple[list[list[int]], list[list[int]]]:
    """The inputs (producers) and the readers of every op."""
    inputs: list[list[int]] = [[] for _ in graph.ops]
    outputs: list[list[int]] = [[] for _ in graph.ops]
    for producer, consumer in graph.edges():
        inputs[consumer].append(producer)
        outputs[producer].append(consumer)
    return inputs, outputs


def _fill(
    graph: Graph, stages: list[int], order: Iterable[int], beside: Sequence[list[int]], reads: bool
) -> None:
    """Give ops in no part the stage of their neighbours, which are inputs or readers."""
    for j in order:
        if graph.ops[j].slice is None or stages[j] != ONCE:
            continue
        forward = runs_forward(graph.ops[j])
        neighbours_in_parts = [k for k in beside[j] if stages[k] != ONCE]
        same_direction = [
            stages[k] for k in neighbours_in_parts if runs_forward(graph.ops[k]) == forward
        ]
        # The last input or the first reader in time; backward passes go through stages in reverse.
        last = max if forward == reads or not same_direction else min
        stages[j] = last(same_direction or [stages[k] for k in neighbours_in_parts], default=ONCE)


def jumps(graph: Graph, stage: Sequence[int]) -> list[tuple[int, int]]:
    """Edges (producer, consumer) of the forward pass that skip a stage.

    Raises:
        NotAPipeline: an op reads the output of a later stage.
    """
    edges = []
    for producer, consumer in graph.edges():
        ends = graph.ops[producer], graph.ops[consumer]
        if any(stage[j] == ONCE or not _hands_on(graph.ops[j]) for j in (producer, consumer)):
            continue
        step = stage[consumer] - stage[producer]
        if step < 0:
            first, second = (printable(op.name, 60) for op in ends)
            raise NotAPipeline(
                f"{second!r} is in stage {stage[consumer]} and reads what {first!r} makes in stage "
                f"{stage[producer]}: slices go through the stages of a pipeline in order"
            )
        if step > 1:
            edges.append((producer, consumer))
    return edges


def _hands_on(op: Op) -> bool:
    """True for ops of the forward pass except inputs, which a tool gives to every stage."""
    return runs_forward(op) and op.kind != "input"


# The passes of a pipeline: each is a stage's forward or backward pass of one slice.
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
    split_passes = set() if schedule is None else _apart(schedule, halves)
    return [half and _whole(half, split_passes) for half in halves]


def _whole(half: Pass, split_passes: set[tuple[int, int]]) -> Pass:
    """The backward pass that a half is of, unless the halves are apart."""
    keep = half.kind == "F" or (half.stage, half.slice) in split_passes
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
            # The sum is late seconds less `LATE` times all seconds of W; it is positive if the
            # share is larger.
            behind = (1 - LATE) if start[j] >= handed_on[place] else -LATE
            late[place] += behind * (end[j] - start[j])
    return {place for place, seconds in late.items() if seconds > 0}
