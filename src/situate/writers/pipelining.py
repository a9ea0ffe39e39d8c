"""torch.distributed.pipelining: the modules of each stage as JSON, and beside it the schedule as
the CSV that its runtime loads."""

from __future__ import annotations

from pathlib import Path

from situate.data.problem import Problem
from situate.files.atomic import write_bytes
from situate.files.strict_json import json_bytes
from situate.schedule.schedule import Schedule
from situate.writers.slices.order import csv_bytes, csv_path, warn_of_axes
from situate.writers.slices.pipeline import planned_rows, slice_pipeline


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the stages to `path` and the schedule to the file of the same name in `.csv`.

    Raises:
        PlanError: there are no slices, or not equal ones; the plan is no pipeline of stages, see
            `slice_pipeline`.
        SituateError: a file cannot be written.
    """
    pipeline = slice_pipeline(problem, schedule)
    rows = planned_rows(problem, schedule, pipeline)
    warn_of_axes(problem)
    schedule_path = csv_path(path)
    slices = problem.graph.slices
    content = {
        "stages": [list(stage.parts) for stage in pipeline.stages],
        "split_points": [stage.parts[0] for stage in pipeline.stages[1:]],
        "ranks": list(pipeline.ranks),
        "devices": [problem.cluster.names[device] for device in pipeline.devices],
        "microbatches": pipeline.slices,
        "scale_grads": slices is None or slices.loss != "sum",
        "schedule": schedule_path.name,
    }
    write_bytes(schedule_path, csv_bytes(rows))
    write_bytes(path, json_bytes(content))
