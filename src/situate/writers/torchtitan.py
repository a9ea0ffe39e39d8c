"""torchtitan: the modules of each stage of its pipeline."""

from __future__ import annotations

import json
from pathlib import Path

from situate.data.problem import Problem
from situate.errors import PlanError
from situate.files.atomic import write_bytes
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.stages import Stages, stages

TRANSFORMERS = "model.layers"
"""The layers of transformers' models that torchtitan has too, under names of its own."""

OWN_NAMES = {"model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output"}
"""Names in torchtitan of the modules that transformers puts beside `model.layers`."""

UNNAMED = {"model.rotary_emb"}
"""Modules of transformers that are no module in torchtitan."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the `[parallelism]` table of a job's TOML file.

    Raises:
        PlanError: the plan is no pipeline of layers, see `stages`, or torchtitan would not find
            the layers.
        SituateError: `path` cannot be written.
    """
    pipeline = stages(problem, schedule)
    _check_outermost(pipeline.layers.path)
    title = f"{problem.graph.name} on {problem.cluster.name}: {', '.join(pipeline.names)}"
    stage_lines = (f"    [{', '.join(map(_quoted, names))}]," for names in _modules(pipeline))
    lines = [
        f"# {printable(title)}",
        "[parallelism]",
        f"pipeline_parallel_degree = {len(pipeline.counts)}",
        "module_fqns_per_model_part = [",
        *stage_lines,
        "]",
        "",
    ]
    write_bytes(path, "\n".join(lines).encode())


def _modules(pipeline: Stages) -> list[list[str]]:
    """Paths of each stage's modules, in torchtitan's names where the model is transformers'."""
    network, found, layer = pipeline.layers, [], 0
    for count in pipeline.counts:
        found.append([part.path for part in network.parts[layer : layer + count]])
        layer += count
    found[0] = [*(part.path for part in network.before), *found[0]]
    found[-1] += [part.path for part in network.after]
    return [_renamed(stage) for stage in found] if network.path == TRANSFORMERS else found


def _check_outermost(path: str) -> None:
    """torchtitan keeps, of a stage's names, the model's own modules and what its own lists hold."""
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
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
