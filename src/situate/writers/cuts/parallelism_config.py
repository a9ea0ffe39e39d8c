"""accelerate: a script that runs `accelerate launch` with the sizes of its `ParallelismConfig`."""

from __future__ import annotations

import warnings
from pathlib import Path

from situate.data.problem import Problem
from situate.errors import PlanError
from situate.files.atomic import write_bytes
from situate.schedule.schedule import Schedule
from situate.writers.cuts.degrees import Degrees, degrees, warn_of_norms
from situate.writers.cuts.teams import RUNS
from situate.writers.exported import script
from situate.writers.layers import layers
from situate.writers.slices.data_parallel import FSDP, STEPS
from situate.writers.stages import visible

VARIABLE = "ACCELERATE_USE_PARALLELISM_CONFIG"
"""The variable by which `Accelerator` reads the sizes from others, without FSDP."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a script for `sh FILE train.py ...`.

    Raises:
        PlanError: the plan is no tensor or context parallelism, see `degrees`; or each team has a
            copy of the parameters.
        SituateError: `path` cannot be written.
    """
    layers(problem, schedule)
    plan = degrees(problem, schedule, "accelerate", "context")
    warn_of_norms(plan, "accelerate")
    mesh = plan.teams
    if len(mesh.devices) > 1 and not mesh.is_sharded:
        raise PlanError(
            "each team has a copy of the parameters, and accelerate spreads them over teams by "
            f"FSDP: plan without --replicas; {RUNS}"
        )
    environment = visible(problem.cluster, mesh.ranks)
    if mesh.slices:
        environment[STEPS] = str(mesh.slices)
    options = _options(plan, environment)
    text = script(
        problem,
        [problem.cluster.names[device] for device in mesh.ranks],
        environment,
        launcher=("accelerate", "launch", *options),
        note=_note(plan),
    )
    write_bytes(path, text)
    if problem.graph.slices is not None and problem.graph.slices.loss == "sum":
        count = len(problem.graph.slices.shares)
        warnings.warn(
            f"the loss is a sum over samples, and accelerate takes means: multiply it by {count}",
            stacklevel=2,
        )


def _options(plan: Degrees, environment: dict[str, str]) -> list[str]:
    """Options of `accelerate launch`; sizes without FSDP go into the environment."""
    mesh = plan.teams
    count = ["--num_processes", str(len(mesh.ranks))]
    sizes = {"dp_shard": len(mesh.devices), "tp": plan.tensor, "cp": plan.context}
    if sizes["dp_shard"] == sizes["cp"] == 1:
        # FSDP needs a dimension of its own, and the options of the sizes need FSDP.
        environment |= {VARIABLE: "true", "PARALLELISM_CONFIG_TP_SIZE": str(plan.tensor)}
        return [*count, "--multi_gpu"]
    names = [(f"--parallelism_config_{name}_size", str(size)) for name, size in sizes.items()]
    texts = [text for pair in names for text in pair]
    return [*count, *FSDP, "--use_parallelism_config", *texts]


def _note(plan: Degrees) -> str:
    mesh = plan.teams
    notes = []
    if plan.tensor > 1:
        notes.append(
            "load the model by from_pretrained(..., "
            f"distributed_config=DistributedConfig(tp_size={plan.tensor}))"
        )
    if mesh.slices:
        notes.append(
            f"each team takes batches of {mesh.samples} and adds the gradients of {mesh.slices} up"
        )
    return "; ".join(notes)
