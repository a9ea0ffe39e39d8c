"""The arguments and options that several commands share."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from situate.cli import completions
from situate.cli.completions import of


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"must be a positive number of seconds, such as 10, got {text!r}")
    return value


def not_negative(value: float | None) -> float | None:
    """A finite number of at least 0, or None."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"must be finite and not negative, got {value}")
    return value


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A file of any readable format, a network of the zoo (such as inception_v3, or "
        "inception_v3:inference), or package.module:function returning a model, inputs and loss.",
        autocompletion=of(completions.networks),
    ),
]
PlannedModel = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="The model that the plan was made for, as 'plan' took it. Give the plan alone where "
        "it names its network or function itself.",
        autocompletion=of(completions.networks),
    ),
]
Runnable = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="The model that the plan was made for: a network of the zoo, or "
        "package.module:function returning a model, inputs and loss. Give the plan alone where it "
        "names its model itself.",
        autocompletion=of(completions.networks),
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
        autocompletion=of(completions.presets),
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
        help="The cluster that the plan was made for. Default: the preset that the plan names.",
        autocompletion=of(completions.presets),
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Measured seconds of ops; 'situate profile' writes them."),
]
Objective = Annotated[
    str,
    typer.Option(
        help="What the plan is to be best in: time, memory or throughput.",
        autocompletion=of(completions.objectives),
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="Method of planning; 'situate methods' lists them.",
        autocompletion=of(completions.methods),
    ),
]
Rules = Annotated[
    str | None,
    typer.Option(
        help="Rules of execution: situate, regal, doppler or dnn-partitioning. Default: those of "
        "the model's format.",
        autocompletion=of(completions.rules),
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        parser=_seconds,
        metavar="SECONDS",
        help="Seconds that planning may take once the model is read. Default: 10, or no limit "
        "where --evaluations is given.",
    ),
]
Evaluations = Annotated[
    int | None,
    typer.Option(
        min=1, help="Plans to try; without a time limit the same seed then gives the same plan."
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random choices.")]
Threads = Annotated[
    int | None, typer.Option(min=1, max=1024, help="Threads to search on. Default: all.")
]
Samples = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=10**9,
        help="Placements that a learning method measures, and 'random' too. Default: 2,400.",
    ),
]
Settings = Annotated[
    str | None,
    typer.Option(
        help="Settings of a learning method, or of brkga: paper, as published, or tuned, situate's "
        "choice. Default: tuned.",
        autocompletion=of(lambda: ("paper", "tuned")),
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Trained weights of regal, gas or idrs; 'situate train' writes them. Default: those "
        "that come with situate: real or synthetic, after the graphs that trained them.",
    ),
]
Grouping = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="Rule by which a learning method groups ops: none, prefix, colocation or structure, "
        "or heavy-edge or metis, which are told costs. Default: the method's own.",
        autocompletion=of(completions.groupings),
    ),
]
GroupCount = Annotated[
    int | None,
    typer.Option(
        "--groups",
        min=1,
        max=10**6,
        help="Number of groups for structure, heavy-edge or metis.",
    ),
]
Noise = Annotated[
    float | None,
    typer.Option(
        callback=not_negative,
        help="Noise of simulated measurements: standard deviation of their logarithm. Default: 0.",
    ),
]
Evaluator = Annotated[
    str | None,
    typer.Option(
        help="Evaluator of a learning method's placements: simulator, or hardware, which runs them "
        "on this machine, or on those of --workers. Default: simulator.",
        autocompletion=of(lambda: ("simulator", "hardware")),
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(
        metavar="N|ray|ray:N|ray://HOST:PORT",
        help="Workers that measure a learning method's placements side by side, or that search for "
        "auto: so many processes of this machine, or a Ray cluster's. The result does not depend "
        "on them, but on how far auto gets in a time limit. Default: this process alone.",
    ),
]
ControllerCount = Annotated[
    int | None,
    typer.Option(
        "--controllers",
        min=1,
        max=1024,
        help="Controllers that learn one policy asynchronously, of colocrl and hierarchical. "
        "Default: one, which waits for all that it asked for.",
    ),
]
Clock = Annotated[
    str | None,
    typer.Option(
        help="Clock of --controllers: virtual, by which workers take the seconds that they "
        "measure, or wall, by which gradients are applied as --workers end. Default: virtual.",
        autocompletion=of(lambda: ("virtual", "wall")),
    ),
]
Stalest = Annotated[
    int | None,
    typer.Option(
        "--stalest",
        min=0,
        help="Most updates with which a gradient of --controllers is late and still applied. "
        "Default: any.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        parser=_seconds,
        metavar="SECONDS",
        help="Time limit of one placement with --evaluator hardware, in seconds. Default: 60.",
    ),
]
CurvesFile = Annotated[
    str | None,
    typer.Option("--curves", metavar="FILE", help="Draw learning curves, as .svg or .png."),
]
TensorBoard = Annotated[
    str | None,
    typer.Option(
        "--tensorboard",
        metavar="FOLDER",
        help="Write TensorBoard logs here while methods learn: mean, best and failures, one run "
        "a method.",
    ),
]


def _optimizer(default: str) -> Any:
    return typer.Option(
        "--optimizer",
        metavar="KIND",
        help="Update of a captured training step: sgd, momentum, adam or adamw; adamw:clip=1.0 "
        f"first clips the gradients to a norm of 1. Default: {default}.",
    )


OWN_UPDATE = "sgd, but a network of the zoo has its own"

Optimizer = Annotated[str | None, _optimizer(OWN_UPDATE)]
PlannedOptimizer = Annotated[str | None, _optimizer("the plan's")]
ModelOrPlanOptimizer = Annotated[str | None, _optimizer(f"the plan's; without one {OWN_UPDATE}")]
Slices = Annotated[
    str | None,
    typer.Option(
        metavar="N|A:B:...",
        help="Cut the batch of a captured training step into N equal slices, or into slices in the "
        "ratio A:B:...; forward and backward pass then run once a slice, updates once.",
    ),
]
ChosenSlices = Annotated[
    str | None,
    typer.Option(
        "--slices",
        metavar="N|A:B:...|auto",
        help="Cut the batch of a captured training step into N equal slices, or into slices in the "
        "ratio A:B:...; forward and backward pass then run once a slice, updates once. auto: "
        "choose number and sizes, within the same time limit.",
        autocompletion=of(lambda: ("auto",)),
    ),
]
SliceDim = Annotated[
    list[str] | None,
    typer.Option(
        metavar="INPUT=AXIS",
        help="Dimension along which an input is cut, or INPUT=whole for one that every slice reads "
        "whole; inputs are called by number or name. Default: 0.",
    ),
]
SliceLoss = Annotated[
    str | None,
    typer.Option(
        metavar="mean|sum",
        help="The loss is a mean, or a sum, over samples. Default: found out from the step.",
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check/--no-check",
        help="Try slices also on random numbers, at a small size, beside the whole batch, and say "
        "by how much their gradients differ; a few seconds.",
    ),
]
BatchNorm = Annotated[
    str | None,
    typer.Option(
        metavar="slice|batch",
        help="Batch norms take statistics over each slice by itself, or over the whole batch, for "
        "which slices wait for one another. Default: slice.",
        autocompletion=of(lambda: ("slice", "batch")),
    ),
]
Sums = Annotated[
    str | None,
    typer.Option(
        metavar="chain|tree",
        help="Add up gradients slice after slice, or in pairs of neighbours. Default: chain.",
        autocompletion=of(lambda: ("chain", "tree")),
    ),
]
ChosenSums = Annotated[
    str | None,
    typer.Option(
        "--sums",
        metavar="chain|tree|auto",
        help="Add up gradients slice after slice, or in pairs of neighbours; auto leaves the "
        "choice to the predicted step. Default: chain.",
        autocompletion=of(lambda: ("chain", "tree", "auto")),
    ),
]
Replicas = Annotated[
    str | None,
    typer.Option(
        metavar="N|A:B:...",
        help="Keep N copies of the parameters, each read by as many of the slices, or by A, B, ... "
        "of them, and updated by itself. Default: parameters are there once.",
    ),
]
Once = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PARAMETER",
        help="A parameter that is there once beside replicas; a pattern such as 'embed*' names "
        "several.",
    ),
]
ChosenOnce = Annotated[
    list[str] | None,
    typer.Option(
        "--once",
        metavar="PARAMETER|auto",
        help="A parameter that is there once beside replicas; a pattern such as 'embed*' names "
        "several, and auto leaves the choice to the predicted step.",
    ),
]
Recompute = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE,...|all",
        help="Modules of a captured training step, by path such as layers.*, that run their "
        "forward pass again before their backward pass, so that memory need not hold what they "
        "made; all: the modules that save most.",
    ),
]
ChosenRecompute = Annotated[
    str | None,
    typer.Option(
        "--recompute",
        metavar="MODULE,...|all|auto",
        help="Modules of a captured training step, by path such as layers.*, that run their "
        "forward pass again before their backward pass, so that memory need not hold what they "
        "made; all: the modules that save most; auto: as many of these as memory asks for.",
    ),
]
Dim = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SIZE",
        help="Size of a symbolic dimension of an ONNX file, or of an axis of an input that has no "
        "name, as INPUT.AXIS=SIZE.",
    ),
]
Out = Annotated[str | None, typer.Option(metavar="FILE", help="Write the plan, as JSON.")]
Picture = Annotated[
    str | None, typer.Option(metavar="FILE", help="Draw the plan, as .svg or .png.")
]
ScheduleFile = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="FILE",
        help="Write every op and transfer with its devices, start and end, as JSON.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print a forecast of each device's memory and of the step's time, with its error, "
        "instead of the search's figures.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
