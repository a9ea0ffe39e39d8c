"""The order of a pipeline's passes: the plan's own, or a tool's."""

from __future__ import annotations

import heapq
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.report.slices.stages import NotAPipeline
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.slices.passes import Pass

Followers = dict[Pass, set[Pass]]
"""By pass, its successors."""


def followers(graph: Graph, of_op: Sequence[Pass | None], stages: int, slices: int) -> Followers:
    """Dependencies of passes, from their ops (n,) and from the rules of a runtime.

    Every stage has a backward pass of every slice, even if no gradient goes through it.
    """
    successors: Followers = defaultdict(set)
    for producer, consumer in graph.edges():
        before, after = of_op[producer], of_op[consumer]
        if before is not None and after is not None and before != after:
            successors[before].add(after)
    split_passes = {(a.stage, a.slice) for a in of_op if a is not None and a.kind == "I"}
    for stage, part in product(range(stages), range(slices)):
        forward, backward = Pass(stage, "F", part), _backward(split_passes, stage, part)
        successors[forward].add(backward)
        if (stage, part) in split_passes:
            successors[backward].add(Pass(stage, "W", part))
        # A runtime hands activations on and gradients back, stage by stage.
        if stage + 1 < stages:
            successors[forward].add(Pass(stage + 1, "F", part))
            successors[_backward(split_passes, stage + 1, part)].add(backward)
    return successors


def _backward(split_passes: set[tuple[int, int]], stage: int, part: int) -> Pass:
    """The pass that another stage waits for."""
    return Pass(stage, "I" if (stage, part) in split_passes else "B", part)


def middles(schedule: Schedule, of_op: Sequence[Pass | None]) -> dict[Pass, float]:
    """By pass, the mean instant of its work in a schedule; passes without work are missing."""
    seconds: dict[Pass, float] = defaultdict(float)
    moment: dict[Pass, float] = defaultdict(float)
    for step, start, end in zip(of_op, schedule.start.tolist(), schedule.end.tolist(), strict=True):
        if step is not None and end > start:
            seconds[step] += end - start
            # The mean is weighted by time: a short op at the edge of a pass hardly moves it.
            moment[step] += (end - start) * (start + end) / 2
    return {step: moment[step] / seconds[step] for step in seconds}


def in_order(waiting: Followers, moment: Mapping[Pass, float]) -> list[Pass]:
    """All passes in topological order; of the ready passes, the one with the earliest moment is
    next.

    Raises:
        NotAPipeline: passes wait for one another.
    """
    missing: dict[Pass, int] = defaultdict(int)
    for after in waiting.values():
        for step in after:
            missing[step] += 1
    passes = {*waiting, *missing}
    ready = [(moment.get(step, 0.0), step) for step in passes if not missing[step]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, first = heapq.heappop(ready)
        ordered.append(first)
        for step in waiting.get(first, ()):
            missing[step] -= 1
            if not missing[step]:
                heapq.heappush(ready, (moment.get(step, 0.0), step))
    if len(ordered) < len(passes):
        stuck = min(passes - set(ordered))
        raise NotAPipeline(
            f"slice {stuck.slice} in stage {stuck.stage} waits for slices that wait for it"
        )
    return ordered


def merged(waiting: Followers, rows: Iterable[Sequence[Pass]]) -> list[Pass]:
    """All passes in an order that keeps the order of each row, a rank's own order.

    Raises:
        NotAPipeline: there is none.
    """
    union: Followers = defaultdict(set, {step: set(after) for step, after in waiting.items()})
    for row in rows:
        for before, after in pairwise(row):
            union[before].add(after)
    return in_order(union, {})


def one_f_one_b(ranks: int, slices: int, chunks: int = 1) -> list[list[Pass]]:
    """By rank, the passes of 1F1B, or of its interleaved form if a rank has several stages.

    Interleaved (Narayanan et al., *Efficient Large-Scale Language Model Training on GPU Clusters*,
    SC 2021), stage s is on rank s modulo `ranks`, and slices go through a rank's stages in groups
    of `ranks`.
    """
    return [_row(rank, ranks, slices, chunks) for rank in range(ranks)]


def _row(rank: int, ranks: int, slices: int, chunks: int) -> list[Pass]:
    forward = _forward_passes(ranks, slices, chunks)
    steps = [Pass(chunk * ranks + rank, "F", part) for chunk, part in forward]
    # Gradients meet the last chunk of a rank first, and slices in the same order as forward.
    back = [Pass((chunks - 1 - chunk) * ranks + rank, "B", part) for chunk, part in forward]
    # Forward passes before the first backward pass: as many as there are ranks behind; interleaved,
    # twice as many, after a whole group through every chunk but the last.
    ahead = ranks - rank - 1
    if chunks > 1:
        ahead = 2 * ahead + (chunks - 1) * ranks
    ahead = min(ahead, len(steps))
    row_steps = steps[:ahead]
    for i in range(len(steps)):
        row_steps += [*steps[ahead + i : ahead + i + 1], back[i]]
    return row_steps


def _forward_passes(ranks: int, slices: int, chunks: int) -> list[tuple[int, int]]:
    """Chunk and slice of each forward pass in turn."""
    # One chunk has no other to alternate with, so all slices are one group.
    group = ranks if chunks > 1 else slices
    return [
        (chunk, part)
        for first in range(0, slices, group)
        for chunk in range(chunks)
        for part in range(first, min(first + group, slices))
    ]


# The schedule of a pipeline as the CSV that torch.distributed.pipelining's runtime loads.
def csv_path(path: str | Path) -> Path:
    """The file of a schedule beside that of its stages.

    Raises:
        SituateError: the two would be the same file.
    """
    csv = Path(path).with_suffix(".csv") if Path(path).name else Path(path)
    if csv == Path(path):
        raise SituateError(
            f"cannot write {str(path)!r}: the schedule goes to the file of this name in .csv: give "
            "the stages another ending, such as .json"
        )
    return csv


def csv_bytes(rows: Iterable[Sequence[Pass]]) -> bytes:
    """A line a rank, of its passes in order (`compute_only`): `0F0,0F1,0B0,0B1`."""
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


def warn_of_axes(problem: Problem) -> None:
    """Warn of inputs that are not cut along dimension 0, as the runtime cuts all."""
    axes = problem.graph.slices.axes if problem.graph.slices else {}
    if other := [name for name, axis in axes.items() if axis != 0]:
        names = ", ".join(repr(printable(name, 60)) for name in other[:3])
        warnings.warn(
            f"the plan does not cut {names} along dimension 0: tell the runtime so "
            "(args_chunk_spec, kwargs_chunk_spec)",
            stacklevel=3,
        )
