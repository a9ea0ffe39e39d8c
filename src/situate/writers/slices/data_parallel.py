"""Data parallelism and gradient accumulation: a script that runs `accelerate launch`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from situate.data.problem import Problem
from situate.errors import PlanError
from situate.files.atomic import write_bytes
from situate.report.slices.parallelism import DataParallel, data_parallel, parallelism_text
from situate.report.slices.use import slice_uses
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.exported import device_names, differences, exported, script
from situate.writers.slices.pipeline import equal_slices
from situate.writers.stages import visible

STEPS = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"
"""The variable that tells `Accelerator` the number of batches in a step."""

FSDP = ("--use_fsdp", "--fsdp_version", "2", "--fsdp_reshard_after_forward", "false")
"""Parameters that were sent stay until the backward pass has read them, as in the plan."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a script for `sh FILE train.py ...`; warns if it differs from the plan.

    Raises:
        PlanError: a slice is spread over devices, the slices or the devices' shares are not equal,
            a device is no accelerator, or a process takes several slices of a batch whose batch
            norms are over the whole batch.
        SituateError: `path` cannot be written.
    """
    plan = _checked(problem, schedule)
    _, samples = equal_slices(problem, "accelerate")
    steps = next(iter(plan.samples.values())) // samples
    _check_statistics(problem, steps)
    devices = [problem.cluster.names.index(name) for name in plan.samples]
    text = script(
        problem,
        list(plan.samples),
        {**visible(problem.cluster, devices), STEPS: str(steps)},
        launcher=("accelerate", "launch", *_options(problem, plan, devices)),
        note=f"each process takes batches of {samples} and adds the gradients of {steps} up",
    )
    write_bytes(path, text)
    for line in _differences(problem, schedule, plan):
        warnings.warn(line, stacklevel=2)


def _checked(problem: Problem, schedule: Schedule) -> DataParallel:
    plan = data_parallel(problem, schedule)
    if plan is None:
        raise PlanError(f"{_spread(problem, schedule)}: {_remedy(problem, schedule)}")
    if not plan.equal:
        raise PlanError(
            f"the plan is {parallelism_text(problem, schedule)}: plan with --method fsdp and a "
            f"multiple of {len(plan.samples)} slices, or run it by situate.compile"
        )
    return plan


def _check_statistics(problem: Problem, steps: int) -> None:
    """Refuse batch norms over the whole batch if a process takes several slices of it."""
    slices = problem.graph.slices
    if slices is not None and slices.batch_norm == "batch" and steps > 1:
        raise PlanError(
            "batch norms take their statistics over the batch, and those of a process over one of "
            f"its {steps} slices at a time: plan with a slice a device, or with --batch-norm slice"
        )


def _spread(problem: Problem, schedule: Schedule) -> str:
    """The slice that is spread most."""
    use = min(
        slice_uses(problem, schedule),
        key=lambda use: max(use.busy.values(), default=0.0) / (sum(use.busy.values()) or 1.0),
    )
    names = ", ".join(printable(name, 40) for name in list(use.busy)[:4])
    return f"accelerate runs a slice on one device, and slice {use.number} is spread over {names}"


def _remedy(problem: Problem, schedule: Schedule) -> str:
    if kind := parallelism_text(problem, schedule):
        return f"the plan is {kind}: export it to pipelining, torchtitan, megatron or deepspeed"
    return "plan with --method data_parallel or fsdp, or run it by situate.compile"


def _options(problem: Problem, plan: DataParallel, devices: Sequence[int]) -> list[str]:
    """Options of `accelerate launch`.

    Raises:
        PlanError: one of several devices is no accelerator.
    """
    numbers, count = device_names(problem.cluster), ["--num_processes", str(len(devices))]
    outside = [device for device in devices if not isinstance(numbers[device], int)]
    if len(devices) == 1:
        return [*count, "--cpu"] if outside else count
    if outside:
        raise PlanError(
            f"device {problem.cluster.names[outside[0]]!r} is no accelerator, and DDP and FSDP "
            "take devices of one kind"
        )
    # Without one of these flags, `accelerate launch` reads the user's saved configuration instead.
    return [*count, *(FSDP if plan.sharded else ("--multi_gpu",))]


def _differences(problem: Problem, schedule: Schedule, plan: DataParallel) -> list[str]:
    lines: list[str] = []
    if not plan.exact:
        whole = exported(problem, schedule, _whole_slices(problem, schedule, plan))
        lines += differences(problem, schedule, whole, "script")
    slices = problem.graph.slices
    if slices is not None and slices.loss == "sum":
        lines.append(
            "the loss is a sum over samples, and accelerate takes the mean over batches and "
            f"processes: multiply it by {len(slices.shares)}"
        )
    if slices is not None and slices.batch_norm == "batch":
        lines.append(
            "batch norms take their statistics over the batch: give accelerate the model that "
            "torch.nn.SyncBatchNorm.convert_sync_batchnorm makes of yours"
        )
    return lines


def _whole_slices(problem: Problem, schedule: Schedule, plan: DataParallel) -> list[int]:
    """(n,) a slice's ops on its device; all other ops as in the plan."""
    device = [problem.cluster.names.index(name) for name in plan.device]
    ops_and_devices = zip(problem.graph.ops, schedule.placement.tolist(), strict=True)
    return [planned if op.slice is None else device[op.slice] for op, planned in ops_and_devices]
