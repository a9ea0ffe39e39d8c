"""A plan of slices as a pipeline that a tool runs: stages, their ranks, and an order of passes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from situate.data.problem import Problem
from situate.errors import PlanError
from situate.report.slices.stages import NotAPipeline, Stage, slice_stages
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.slices.order import followers, in_order, merged, middles, one_f_one_b
from situate.writers.slices.passes import ONCE, Pass, jumps, passes_of_ops, stage_of_ops
from situate.writers.slices.predicted import warn_of_figures

MAX_NAMED = 3
"""Most names in a warning."""

MAX_LISTED = 12
"""Most ranks in an error."""


@dataclass(frozen=True)
class SlicePipeline:
    """A pipeline of slices.

    Attributes:
        stages: in the order of a slice's way through them.
        ranks: of each stage; ranks are numbered by their first stage.
        devices: of each rank.
        slices: their number.
        samples: of each slice.
        stage_of_op: (n,) see `stage_of_ops`.
    """

    stages: tuple[Stage, ...]
    ranks: tuple[int, ...]
    devices: tuple[int, ...]
    slices: int
    samples: int
    stage_of_op: tuple[int, ...]

    @property
    def chunks(self) -> int:
        """Stages of each rank if stage s is on rank s modulo the number of ranks, else 0."""
        count = len(self.devices)
        looped = all(rank == stage % count for stage, rank in enumerate(self.ranks))
        return len(self.ranks) // count if looped and not len(self.ranks) % count else 0


def slice_pipeline(problem: Problem, schedule: Schedule) -> SlicePipeline:
    """The pipeline of a plan of slices; warns about duties of the stages' own code.

    Raises:
        PlanError: there are no slices, or their sizes differ.
        NotAPipeline: a part of the model runs on several devices, all run on one, or a slice does
            not go through the stages in order.
    """
    count, samples = equal_slices(problem, "a pipeline")
    if problem.graph.slices and problem.graph.slices.batch_norm == "batch":
        raise PlanError(
            "batch norms take their statistics over the batch, for which all slices wait, and no "
            "pipeline does: plan with --batch-norm slice, or run it by situate.compile"
        )
    stages = slice_stages(problem, schedule)
    devices = tuple(dict.fromkeys(stage.device for stage in stages))
    if len(devices) < 2:
        raise NotAPipeline("all slices run on one device, and a pipeline has several")
    stage = stage_of_ops(problem.graph, stages)
    _warn_of_jumps(problem, stage)
    _warn_of_ties(problem, stage)
    ranks = tuple(devices.index(s.device) for s in stages)
    return SlicePipeline(stages, ranks, devices, count, samples, tuple(stage))


def equal_slices(problem: Problem, format_name: str) -> tuple[int, int]:
    """The number of slices, and the samples of each.

    Raises:
        PlanError: there are none, or they are of several sizes.
    """
    slices = problem.graph.slices
    if slices is None:
        raise PlanError(
            f"the plan takes its batch whole, and {format_name} goes by slices of it: plan with "
            "--slices"
        )
    if len(set(slices.shares)) > 1:
        raise PlanError(
            f"slices {slices} are of several sizes, and {format_name} takes equal ones: plan with "
            f"--slices {len(slices.shares)}"
        )
    return len(slices.shares), slices.shares[0]


def check_in_turn(pipeline: SlicePipeline, tool: str) -> None:
    """
    Raises:
        NotAPipeline: stage s is not on rank s modulo the number of ranks.
    """
    if not pipeline.chunks:
        ranks = ", ".join(map(str, pipeline.ranks[:MAX_LISTED]))
        more = ", ..." if len(pipeline.ranks) > MAX_LISTED else ""
        raise NotAPipeline(
            f"the stages are on ranks {ranks}{more}, and {tool} deals them out in turn, as many to "
            "each"
        )


def planned_rows(problem: Problem, schedule: Schedule, pipeline: SlicePipeline) -> list[list[Pass]]:
    """Passes by rank in the plan's order; warns with its predicted figures if it differs from the
    plan.

    Raises:
        NotAPipeline: slices wait for one another.
    """
    of_op = passes_of_ops(problem, pipeline.stage_of_op, schedule)
    waiting = followers(problem.graph, of_op, len(pipeline.stages), pipeline.slices)
    order = in_order(waiting, middles(schedule, of_op))
    warn_of_figures(problem, schedule, pipeline.stages, pipeline.stage_of_op, of_op, order)
    rows: list[list[Pass]] = [[] for _ in pipeline.devices]
    for step in order:
        rows[pipeline.ranks[step.stage]].append(step)
    return [_with_joined_passes(row) for row in rows]


def _with_joined_passes(row: Sequence[Pass]) -> list[Pass]:
    """A rank's passes with consecutive halves of a backward pass joined.

    Only the first stage joins them, because it sends no gradient.
    """
    joined_row: list[Pass] = []
    for step in row:
        # A W comes after its I in any order of passes, so a row never begins with one.
        if step.kind == "W" and not step.stage and joined_row[-1] == step._replace(kind="I"):
            joined_row[-1] = step._replace(kind="B")
        else:
            joined_row.append(step)
    return joined_row


def warn_of_one_f_one_b(problem: Problem, schedule: Schedule, pipeline: SlicePipeline) -> None:
    """Warn with the predicted figures of the plan in a tool with 1F1B, or its interleaved form.

    Raises:
        NotAPipeline: slices wait for one another.
    """
    of_op = passes_of_ops(problem, pipeline.stage_of_op, None)
    waiting = followers(problem.graph, of_op, len(pipeline.stages), pipeline.slices)
    rows = one_f_one_b(len(pipeline.devices), pipeline.slices, pipeline.chunks)
    order = merged(waiting, rows)
    warn_of_figures(problem, schedule, pipeline.stages, pipeline.stage_of_op, of_op, order)


def _warn_of_jumps(problem: Problem, stage: Sequence[int]) -> None:
    """
    Raises:
        NotAPipeline: an op reads a tensor of a later stage.
    """
    if far := jumps(problem.graph, stage):
        names = _list_text(problem.graph.ops[producer].name for producer, _ in far)
        warnings.warn(
            "a stage hands its results to the next one alone, and stages behind that one read "
            f"{names}: the model has to pass it on, or to make it in each of them",
            stacklevel=3,
        )


def _warn_of_ties(problem: Problem, stage: Sequence[int]) -> None:
    """Warn of parameters that several stages read."""
    parameter_names = [op.name if op.kind == "parameter" else "" for op in problem.graph.ops]
    readers: dict[str, set[int]] = {name: set() for name in parameter_names if name}
    for producer, consumer in problem.graph.edges():
        if parameter_names[producer] and stage[consumer] != ONCE:
            readers[parameter_names[producer]].add(stage[consumer])
    if tied := [name for name, stages in readers.items() if len(stages) > 1]:
        warnings.warn(
            f"several stages read {_list_text(tied)}: each has a copy of its own, and all of their "
            "gradients have to be added up",
            stacklevel=3,
        )


def _list_text(names: Iterable[str]) -> str:
    unique_names = list(dict.fromkeys(names))
    more = ", ..." if len(unique_names) > MAX_NAMED else ""
    return ", ".join(repr(printable(name, 60)) for name in unique_names[:MAX_NAMED]) + more
