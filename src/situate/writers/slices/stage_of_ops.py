"""The stage of a pipeline that every op of a slice belongs to, also of ops that are in no part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from situate.data.graph import Graph, Op
from situate.report.model_parts import model_parts
from situate.report.slice_stages import NotAPipeline, Stage
from situate.report.text import printable
from situate.writers.dependence import runs_forward

ONCE = -1
"""The stage of an op that runs once a step."""


def stage_of_ops(graph: Graph, stages: Sequence[Stage]) -> list[int]:
    """(n,) the stage of each op of a slice; `ONCE` of all others.

    An op in no part, such as of the loss, goes where the last of what it reads is in the forward
    pass, and where the first of it is in the backward pass; one that reads nothing, to its reader.
    """
    parts = model_parts(graph)
    number = {path: i for i, stage in enumerate(stages) for path in stage.parts}
    of_part = [number[path] for path in parts.paths]
    found = [
        of_part[part] if op.slice is not None and part >= 0 else ONCE
        for op, part in zip(graph.ops, parts.of_op, strict=True)
    ]
    read, made = neighbours(graph)
    for order, beside in ((graph.order, read), (tuple(reversed(graph.order)), made)):
        for j in order:
            if graph.ops[j].slice is not None and found[j] == ONCE:
                found[j] = _beside(graph, found, j, beside[j], order is graph.order)
    return found


def neighbours(graph: Graph) -> tuple[list[list[int]], list[list[int]]]:
    """The ops that every op reads from, and those that read from it."""
    read: list[list[int]] = [[] for _ in graph.ops]
    made: list[list[int]] = [[] for _ in graph.ops]
    for producer, consumer in graph.edges():
        read[consumer].append(producer)
        made[producer].append(consumer)
    return read, made


def _beside(graph: Graph, found: Sequence[int], op: int, others: Iterable[int], reads: bool) -> int:
    """The stage of an op in no part by those that it reads from, or that read from it."""
    forward = runs_forward(graph.ops[op])
    known = [j for j in others if found[j] != ONCE]
    alike = [j for j in known if runs_forward(graph.ops[j]) == forward] or known
    if not alike:
        return ONCE
    return (max if forward == reads else min)(found[j] for j in alike)


def jumps(graph: Graph, stage: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of ops (producer, consumer) of the forward pass with a stage between theirs.

    Raises:
        NotAPipeline: an op reads what a later stage makes.
    """
    found = []
    for producer, consumer in graph.edges():
        ends = graph.ops[producer], graph.ops[consumer]
        if any(stage[j] == ONCE or not _passes(graph.ops[j]) for j in (producer, consumer)):
            continue
        step = stage[consumer] - stage[producer]
        if step < 0:
            first, second = (printable(op.name, 60) for op in ends)
            raise NotAPipeline(
                f"{second!r} is in stage {stage[consumer]} and reads what {first!r} makes in stage "
                f"{stage[producer]}: slices go through the stages of a pipeline in order"
            )
        if step > 1:
            found.append((producer, consumer))
    return found


def _passes(op: Op) -> bool:
    """True if the op is of the forward pass and no input, which a tool gives to every stage."""
    return runs_forward(op) and op.kind != "input"
