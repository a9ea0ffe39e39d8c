"""DeepSpeed: the layers of each pipeline stage, and the batch sizes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from situate.data.problem import Problem
from situate.files.atomic import write_bytes
from situate.files.strict_json import json_bytes
from situate.report.slices.stages import NotAPipeline
from situate.schedule.schedule import Schedule
from situate.writers.slices.pipeline import slice_pipeline, warn_of_one_f_one_b
from situate.writers.stages import check_accelerator, stages, visible


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the settings of a job's configuration as JSON.

    Raises:
        PlanError: the plan is no pipeline, see `stages` and `slice_pipeline`, or has several stages
            on a device.
        SituateError: `path` cannot be written.
    """
    make = _whole_batch if problem.graph.slices is None else _slices
    write_bytes(path, json_bytes(make(problem, schedule)))


def _whole_batch(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    pipeline = stages(problem, schedule)
    network, paths, layer = pipeline.layers, list[list[str]](), 0
    for count in pipeline.counts:
        paths.append([part.path for part in network.parts[layer : layer + count]])
        layer += count
    paths[0] = [*(part.path for part in network.before), *paths[0]]
    paths[-1] += [part.path for part in network.after]
    _warn_of_ranks(pipeline.environment)
    return {"pipeline": _pipeline(paths)}


def _slices(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    pipeline = slice_pipeline(problem, schedule)
    for stage in pipeline.stages:
        check_accelerator(problem, repr(stage.parts[0]), stage.device)
    if pipeline.chunks != 1:
        raise NotAPipeline(
            f"{len(pipeline.stages)} stages are on {len(pipeline.devices)} devices, and DeepSpeed "
            "has one a device"
        )
    warn_of_one_f_one_b(problem, schedule, pipeline)
    _warn_of_ranks(visible(problem.cluster, pipeline.devices))
    return {
        "train_batch_size": pipeline.slices * pipeline.samples,
        "train_micro_batch_size_per_gpu": pipeline.samples,
        "gradient_accumulation_steps": pipeline.slices,
        "pipeline": _pipeline([stage.parts for stage in pipeline.stages]),
    }


def _pipeline(stages: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The stages, the layers in order, and the first layer of each stage, then the number of
    layers."""
    return {
        "stages": len(stages),
        "layers": [path for stage in stages for path in stage],
        "parts": list(accumulate(map(len, stages), initial=0)),
    }


def _warn_of_ranks(environment: dict[str, str]) -> None:
    for name, value in environment.items():
        warnings.warn(f"run it with {name}={value}, which numbers the stages", stacklevel=3)
