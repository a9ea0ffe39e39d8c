"""The stage of a pipeline that every op of a slice belongs to, also of ops that are in no part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from situate.data.graph import Graph, Op
from situate.report.model_parts import model_parts
from situate.report.slices.stages import NotAPipeline, Stage
from situate.report.text import printable
from situate.writers.dependence import runs_forward

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
        placed = [k for k in beside[j] if stages[k] != ONCE]
        same_direction = [stages[k] for k in placed if runs_forward(graph.ops[k]) == forward]
        last = max if forward == reads or not same_direction else min
        stages[j] = last(same_direction or [stages[k] for k in placed], default=ONCE)


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
