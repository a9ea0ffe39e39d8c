"""Arguments and options that several commands share one by one."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from situate.cli import names


def seconds(text: str) -> float:
    """A positive, finite number of seconds.

    Raises:
        BadParameter: the text is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"must be a positive number of seconds, such as 10, got {text!r}")
    return value


def not_negative(value: float | None) -> float | None:
    """A finite number of at least 0, or None.

    Raises:
        BadParameter: the number is negative, infinite or not a number.
    """
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"must be finite and not negative, got {value}")
    return value


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A file of any readable format, a network of the zoo (such as inception_v3, or "
        "inception_v3:inference), or package.module:function returning a model, inputs and loss.",
        autocompletion=names.complete(names.networks),
    ),
]
PlannedModel = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="The model of the plan, as typed for 'plan'. Leave it out if the plan names a network "
        "of the zoo or a function.",
        autocompletion=names.complete(names.networks),
    ),
]
Runnable = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="The model of the plan: a network of the zoo, or package.module:function returning a "
        "model, inputs and loss. Leave it out if the plan names its model.",
        autocompletion=names.complete(names.networks),
    ),
]
PlanFile = Annotated[
    str | None, typer.Argument(metavar="PLAN", help="A file that 'plan --out' wrote.")
]


def _cluster(default: str) -> Any:
    return typer.Option(
        "--cluster",
        metavar="NAME|FILE|identical:N",
        help="A preset, a TOML file, or N equal devices; 'situate cluster list' shows the "
        f"presets. Default: {default}.",
        autocompletion=names.complete(names.presets),
    )


OWN_MACHINE = "the machine described in the model's own file"

Cluster = Annotated[str | None, _cluster(OWN_MACHINE)]
PlannedCluster = Annotated[
    str | None, _cluster(f"the preset or equal devices that the plan names, else {OWN_MACHINE}")
]
Cpus = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=256,
        metavar="N",
        help="Describe the CPU as N devices, cpu:0 and on, that share its threads and memory.",
    ),
]
PlanCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        help="The cluster of the plan. Default: the preset that the plan names.",
        autocompletion=names.complete(names.presets),
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Measured seconds of ops, as 'situate profile' writes them."),
]
Objective = Annotated[
    str,
    typer.Option(
        help="The quantity to minimise: time, memory or throughput (seconds between steps).",
        autocompletion=names.complete(names.objectives),
    ),
]
Rules = Annotated[
    str | None,
    typer.Option(
        help="Rules of execution: situate, regal, doppler or dnn-partitioning. Default: those of "
        "the model's format.",
        autocompletion=names.complete(names.rules),
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random choices.")]
Threads = Annotated[
    int | None, typer.Option(min=1, max=1024, help="Threads to search on. Default: all.")
]


def _optimizer(default: str) -> Any:
    return typer.Option(
        "--optimizer",
        metavar="KIND",
        help="Update of a captured training step: sgd, momentum, adam, adamw, adamw-bf16, "
        "adamw8bit, adafactor or muon; adamw:clip=1.0 first clips the gradients to a norm of 1, "
        "and adamw:recipe=NAME trains in bfloat16: megatron, fsdp2, deepspeed, amp or pure. "
        f"Default: {default}.",
    )


OWN_UPDATE = "sgd, but a network of the zoo has its own"

Optimizer = Annotated[str | None, _optimizer(OWN_UPDATE)]
PlannedOptimizer = Annotated[str | None, _optimizer("the plan's")]
ModelOrPlanOptimizer = Annotated[str | None, _optimizer(f"the plan's; without one {OWN_UPDATE}")]
Dim = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SIZE",
        help="Size of a symbolic dimension of an ONNX file. For an axis of an input without a name "
        "write INPUT.AXIS=SIZE.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
