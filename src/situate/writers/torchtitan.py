"""torchtitan: the modules of each stage of its pipeline, or the degrees of its parallelism."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from situate.data.problem import Problem
from situate.errors import PlanError
from situate.files.atomic import write_bytes
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.cuts.degrees import degrees
from situate.writers.layers import Layers, layers
from situate.writers.slices.order import csv_bytes, csv_path, warn_of_axes
from situate.writers.slices.pipeline import check_in_turn, planned_rows, slice_pipeline
from situate.writers.stages import check_accelerator, stages, visible

TRANSFORMERS = "model.layers"
"""The layers of transformers' models that torchtitan has too, under names of its own."""

OWN_NAMES = {"model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output"}
"""Names in torchtitan of the modules that transformers puts beside `model.layers`."""

UNNAMED = {"model.rotary_emb"}
"""Modules of transformers that are no module in torchtitan."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the `[parallelism]` table of a job's TOML file.

    A plan of slices adds the size of its batch, and its schedule goes to the file of the same name
    in `.csv`.

    Raises:
        PlanError: the plan is no pipeline of layers, see `stages` and `slice_pipeline`, its stages
            are not dealt out to the devices in turn, or torchtitan would not find the layers; or
            a plan of parts is none of tensor, context and expert parallelism, see `degrees`.
        SituateError: a file cannot be written.
    """
    if problem.graph.cuts is not None:
        table = _parts(problem, schedule)
    elif problem.graph.slices is None:
        pipeline = stages(problem, schedule)
        _check_outermost(pipeline.layers.path)
        table = _table(problem, pipeline.names, _modules(pipeline.layers, pipeline.counts))
    else:
        table = _slices(problem, schedule, csv_path(path))
    write_bytes(path, "\n".join([*table, ""]).encode())


def _slices(problem: Problem, schedule: Schedule, beside: Path) -> list[str]:
    """Lines of the file, after the schedule was written to the one beside it."""
    network, pipeline = layers(problem, schedule), slice_pipeline(problem, schedule)
    _check_outermost(network.path)
    for stage in pipeline.stages:
        check_accelerator(problem, repr(stage.parts[0]), stage.device)
    check_in_turn(pipeline, "torchtitan")
    rows = planned_rows(problem, schedule, pipeline)
    warn_of_axes(problem)
    names = [problem.cluster.names[device] for device in pipeline.devices]
    parts = [list(stage.parts) for stage in pipeline.stages]
    modules = [_renamed(stage) for stage in parts] if network.path == TRANSFORMERS else parts
    write_bytes(beside, csv_bytes(rows))
    return [
        *_table(problem, names, modules),
        'pipeline_parallel_schedule = "PipelineScheduleMulti"',
        f"pipeline_parallel_schedule_csv = {_quoted(str(beside))}",
        f"pipeline_parallel_microbatch_size = {pipeline.samples}",
        "",
        "[training]",
        f"local_batch_size = {pipeline.slices * pipeline.samples}",
    ]


def _parts(problem: Problem, schedule: Schedule) -> list[str]:
    network = layers(problem, schedule)
    _check_outermost(network.path)
    plan = degrees(problem, schedule, "torchtitan", "context", "expert", "pipeline")
    mesh = plan.teams
    count = mesh.copies
    degree = {
        "tensor": plan.tensor,
        "context": plan.context,
        "expert": plan.expert,
        "data_replicate": 1 if mesh.is_sharded else count,
        "data_shard": count if mesh.is_sharded else 1,
    }
    if mesh.counts:
        degree["pipeline"] = len(mesh.counts)
    names = {"data_replicate": "data_parallel_replicate", "data_shard": "data_parallel_shard"}
    lines = [
        *_title(problem, [problem.cluster.names[device] for device in mesh.ranks]),
        *(f"# set {k}={v}" for k, v in visible(problem.cluster, mesh.ranks).items()),
        "[parallelism]",
        *(f"{names.get(kind, f'{kind}_parallel')}_degree = {n}" for kind, n in degree.items()),
    ]
    if plan.tensor > 1 and not plan.has_sequence:
        lines.append("enable_sequence_parallel = false")
    if mesh.counts:
        lines += _list_lines(_modules(network, mesh.counts))
    if mesh.counts and mesh.slices:
        lines.append('pipeline_parallel_schedule = "1F1B"')
        lines.append(f"pipeline_parallel_microbatch_size = {mesh.samples}")
    if mesh.slices:
        local = mesh.slices * mesh.samples if mesh.counts else mesh.samples
        lines += ["", "[training]", f"local_batch_size = {local}"]
        lines.append(f"global_batch_size = {mesh.batch}")
    return lines


def _title(problem: Problem, names: Sequence[str]) -> list[str]:
    title = f"{problem.graph.name} on {problem.cluster.name}: {', '.join(names)}"
    return [f"# {printable(title)}"]


def _table(problem: Problem, names: Sequence[str], modules: Sequence[Sequence[str]]) -> list[str]:
    return [
        *_title(problem, names),
        "[parallelism]",
        f"pipeline_parallel_degree = {len(names)}",
        *_list_lines(modules),
    ]


def _list_lines(modules: Sequence[Sequence[str]]) -> list[str]:
    return [
        "module_fqns_per_model_part = [",
        *(f"    [{', '.join(map(_quoted, stage))}]," for stage in modules),
        "]",
    ]


def _modules(network: Layers, counts: Sequence[int]) -> list[list[str]]:
    """Paths of each stage's modules; in torchtitan's names if the model is transformers'."""
    stages, layer = [], 0
    for count in counts:
        stages.append([part.path for part in network.parts[layer : layer + count]])
        layer += count
    stages[0] = [*(part.path for part in network.before), *stages[0]]
    stages[-1] += [part.path for part in network.after]
    return [_renamed(stage) for stage in stages] if network.path == TRANSFORMERS else stages


def _check_outermost(path: str) -> None:
    """Check the path of the list of layers: torchtitan splits only the model's own lists."""
    if "." in path and path != TRANSFORMERS:
        outer, _, rest = path.rpartition(".")
        raise PlanError(
            f"the layers are {printable(path, 60)!r}, and torchtitan splits only lists that the "
            f"model itself has, such as {printable(rest, 60)!r}: plan a model without "
            f"{printable(outer, 60)!r} around them"
        )


def _renamed(stage: list[str]) -> list[str]:
    names = (path for path in stage if path not in UNNAMED)
    return [OWN_NAMES.get(path, path.removeprefix("model.")) for path in names]


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    # JSON and TOML share their escapes, but TOML forbids a bare DEL, which JSON allows.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
