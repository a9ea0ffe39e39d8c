"""vLLM: how many layers each stage of its pipeline has."""

from __future__ import annotations

from pathlib import Path

from situate.data.problem import Problem
from situate.files.atomic import write_bytes
from situate.schedule.schedule import Schedule
from situate.writers.exported import script
from situate.writers.stages import stages


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a script for `sh FILE vllm serve MODEL`.

    Raises:
        PlanError: the plan is no pipeline of layers, see `stages`.
        SituateError: `path` cannot be written.
    """
    pipeline = stages(problem, schedule)
    partition = {"VLLM_PP_LAYER_PARTITION": ",".join(map(str, pipeline.counts))}
    size = ["--pipeline-parallel-size", str(len(pipeline.counts))]
    environment = {**pipeline.environment, **partition}
    write_bytes(path, script(problem, pipeline.names, environment, size))
