"""Megatron-LM: the layout of its pipeline, such as `Et*3|t*4L`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from situate.data.problem import Problem
from situate.files.atomic import write_bytes
from situate.schedule.schedule import Schedule
from situate.writers.launcher import script
from situate.writers.stages import stages


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a script for `sh FILE torchrun ... pretrain_gpt.py ...`.

    Raises:
        PlanError: the plan is no pipeline of layers, see `stages`.
        SituateError: `path` cannot be written.
    """
    pipeline = stages(problem, schedule)
    size = ["--pipeline-model-parallel-size", str(len(pipeline.counts))]
    arguments = [*size, "--pipeline-model-parallel-layout", layout(pipeline.counts)]
    write_bytes(path, script(problem, pipeline.names, pipeline.environment, arguments))


def layout(counts: Sequence[int]) -> str:
    """`E` the embedding, `t` a layer, `|` between stages, `L` the loss."""
    return f"E{'|'.join('t' if count == 1 else f't*{count}' for count in counts)}L"
