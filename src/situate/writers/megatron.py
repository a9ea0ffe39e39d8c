"""Megatron-LM: the layout of its pipeline, such as `Et*3|t*4L`, or its degrees of parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from situate.data.problem import Problem
from situate.errors import PlanError
from situate.files.atomic import write_bytes
from situate.report.slices.stages import NotAPipeline
from situate.schedule.schedule import Schedule
from situate.writers.cuts.degrees import GROUPED, degrees, warn_of_copies
from situate.writers.exported import script
from situate.writers.layers import layers
from situate.writers.slices.pipeline import (
    SlicePipeline,
    check_in_turn,
    slice_pipeline,
    warn_of_one_f_one_b,
)
from situate.writers.stages import check_accelerator, stages, visible, warn_of_ends


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a script for `sh FILE torchrun ... pretrain_gpt.py ...`.

    Raises:
        PlanError: the plan is no pipeline of layers, see `stages` and `slice_pipeline`, or its
            stages are not dealt out to the devices in turn; or a plan of parts is none of tensor,
            context and expert parallelism, see `degrees`.
        SituateError: `path` cannot be written.
    """
    if problem.graph.cuts is not None:
        content = _parts(problem, schedule)
    else:
        make = _whole_batch if problem.graph.slices is None else _slices
        content = make(problem, schedule)
    write_bytes(path, content)


def _whole_batch(problem: Problem, schedule: Schedule) -> bytes:
    pipeline = stages(problem, schedule)
    arguments = _arguments(len(pipeline.counts), pipeline.counts)
    return script(problem, pipeline.names, pipeline.environment, arguments)


def _slices(problem: Problem, schedule: Schedule) -> bytes:
    network, pipeline = layers(problem, schedule), slice_pipeline(problem, schedule)
    _check(problem, pipeline)
    warn_of_ends(problem, network.before, pipeline.stages[0].device, "first")
    warn_of_ends(problem, network.after, pipeline.stages[-1].device, "last")
    warn_of_one_f_one_b(problem, schedule, pipeline)
    own = {part.path for part in network.parts}
    counts = [sum(path in own for path in stage.parts) for stage in pipeline.stages]
    sizes = {"micro": pipeline.samples, "global": pipeline.slices * pipeline.samples}
    arguments = _arguments(len(pipeline.devices), counts)
    for which, size in sizes.items():
        arguments += [f"--{which}-batch-size", str(size)]
    names = [problem.cluster.names[device] for device in pipeline.devices]
    return script(problem, names, visible(problem.cluster, pipeline.devices), arguments)


def _parts(problem: Problem, schedule: Schedule) -> bytes:
    plan = degrees(problem, schedule, "Megatron-LM", "context", "expert", "pipeline")
    mesh, sizes = plan.teams, {}
    has_experts = plan.expert > 1 or any(op.kind in GROUPED for op in problem.graph.ops)
    if has_experts and plan.tensor > 1 and not plan.has_sequence:
        raise PlanError(
            "Megatron-LM runs experts beside tensor parallelism only with norms on parts of the "
            f"sequence: plan with --cuts sequence={plan.tensor} too"
        )
    sizes["tensor-model"] = plan.tensor
    sizes["context"] = plan.context
    sizes["expert-model"] = plan.expert
    arguments = [
        text
        for name, size in sizes.items()
        if size > 1
        for text in (f"--{name}-parallel-size", str(size))
    ]
    arguments += _arguments(len(mesh.counts), mesh.counts) if mesh.counts else []
    arguments += ["--sequence-parallel"] if plan.has_sequence else []
    arguments += ["--expert-tensor-parallel-size", "1"] if plan.expert > 1 else []
    if mesh.slices:
        arguments += ["--micro-batch-size", str(mesh.samples)]
        arguments += ["--global-batch-size", str(mesh.batch)]
    if mesh.is_sharded:
        arguments += ["--use-distributed-optimizer"]
        warn_of_copies("Megatron-LM")
    names = [problem.cluster.names[device] for device in mesh.ranks]
    return script(problem, names, visible(problem.cluster, mesh.ranks), arguments)


def _check(problem: Problem, pipeline: SlicePipeline) -> None:
    count = len(pipeline.devices)
    for stage in pipeline.stages:
        check_accelerator(problem, repr(stage.parts[0]), stage.device)
    check_in_turn(pipeline, "Megatron-LM")
    if pipeline.chunks > 1 and pipeline.slices % count:
        raise NotAPipeline(
            f"slices go through several stages of a device in groups of {count}, one a device, and "
            f"{pipeline.slices} are no multiple of that"
        )


def _arguments(size: int, counts: Sequence[int]) -> list[str]:
    parallel = ["--pipeline-model-parallel-size", str(size)]
    return [*parallel, "--pipeline-model-parallel-layout", layout(counts)]


def layout(counts: Sequence[int]) -> str:
    """`E` the embedding, `t` a layer, `|` between stages, `L` the loss."""
    return f"E{'|'.join(map(_layers, counts))}L"


def _layers(count: int) -> str:
    return f"t*{count}" if count > 1 else "t" * count
