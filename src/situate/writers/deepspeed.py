"""DeepSpeed: the layers of each pipeline stage or the modules that are cut, and batch sizes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.files.atomic import write_bytes
from situate.files.strict_json import json_bytes
from situate.report.slices.stages import NotAPipeline
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.cuts.degrees import degrees, warn_of_copies, warn_of_norms
from situate.writers.cuts.styles import LINEAR, gathered_parameters
from situate.writers.cuts.teams import RUNS
from situate.writers.slices.pipeline import slice_pipeline, warn_of_one_f_one_b
from situate.writers.stages import check_accelerator, stages, visible


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the settings of a job's configuration as JSON.

    Raises:
        PlanError: the plan is no pipeline, see `stages` and `slice_pipeline`, or has several stages
            on a device; or a plan of parts is no tensor parallelism, see `degrees`.
        SituateError: `path` cannot be written.
    """
    if problem.graph.cuts is not None:
        content = _parts(problem, schedule)
    else:
        make = _whole_batch if problem.graph.slices is None else _slices
        content = make(problem, schedule)
    write_bytes(path, json_bytes(content))


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


def _parts(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    plan = degrees(problem, schedule, "DeepSpeed")
    mesh = plan.teams
    warn_of_norms(plan, "DeepSpeed")
    _warn_of_ranks(visible(problem.cluster, mesh.ranks))
    content: dict[str, Any] = {
        "tensor_parallel": {
            "autotp_size": plan.tensor,
            "partition_config": {
                "use_default_specs": False,
                "layer_specs": _layer_specs(problem.graph),
            },
        },
    }
    if mesh.slices:
        content |= {
            "train_batch_size": mesh.batch,
            "train_micro_batch_size_per_gpu": mesh.samples,
            "gradient_accumulation_steps": mesh.slices,
        }
    if mesh.is_sharded:
        content["zero_optimization"] = {"stage": 2}
        warn_of_copies("DeepSpeed")
    return content


def _layer_specs(graph: Graph) -> list[dict[str, Any]]:
    """The weights that are cut by rows or columns, each under a pattern for all layers.

    Raises:
        PlanError: a module is no product, reads all parts of its weight, or there is none.
    """
    specs: dict[str, dict[str, Any]] = {}
    gathered = gathered_parameters(graph)
    for parameter in graph.cut_parameters:
        if parameter.name.rpartition(".")[2] == "bias":
            continue
        name = repr(printable(parameter.name, 60))
        if parameter.kind == "vocabulary":
            warnings.warn(f"DeepSpeed leaves {name} whole, which the plan cuts", stacklevel=4)
        elif any(reader != LINEAR for _, reader in parameter.readers):
            raise PlanError(f"{name} is no weight of nn.Linear, which DeepSpeed cuts: {RUNS}")
        elif parameter.name in gathered:
            raise PlanError(f"the plan gathers {name}, and DeepSpeed reads a part of it: {RUNS}")
        else:
            parts = parameter.name.split(".")
            digits = (r"\d+" if part.isdecimal() else re.escape(part) for part in parts)
            pattern = r"\.".join(digits)
            # A fused matrix is cut range by range.
            shape = {"shape": [parameter.ranges, -1], "partition_dim": 0}
            specs[pattern] = {
                "patterns": [rf"(.*\.)?{pattern}$"],
                "partition_type": "row" if parameter.dim else "column",
                **(shape if parameter.ranges > 1 else {}),
            }
    if not specs:
        raise PlanError(f"the plan cuts no product of a layer, which DeepSpeed cuts: {RUNS}")
    return list(specs.values())


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
