"""The arguments and options that several commands share."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from situate.cli import completions
from situate.cli.completions import of


def _positive(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"must be a positive number of seconds, got {value}")
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
Runnable = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="What the plan was made for: a network of the zoo, or package.module:function "
        "returning a model, inputs and loss. The plan alone will do where it names that itself.",
        autocompletion=of(completions.networks),
    ),
]
PlanFile = Annotated[
    str | None, typer.Argument(metavar="PLAN", help="A file that 'plan --out' wrote.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE|identical:N",
        help="A preset, a TOML file, or N equal devices; 'situate cluster list' shows the "
        "presets. Default: the machine that the model's own file brings.",
        autocompletion=of(completions.presets),
    ),
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
    typer.Option(
        metavar="FILE", help="What ops took where they were measured: 'situate profile' writes it."
    ),
]
Objective = Annotated[
    str, typer.Option(help="time, memory or throughput.", autocompletion=of(completions.objectives))
]
Method = Annotated[
    str, typer.Option(help="'situate methods' lists them.", autocompletion=of(completions.methods))
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
        callback=_positive,
        help="Seconds that planning may take once the model is read. Default: 10, or no limit "
        "where --evaluations is given.",
    ),
]
Evaluations = Annotated[
    int | None,
    typer.Option(
        min=1, help="Schedules to try; with the same seed the result is then always the same."
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
        help="Placements that a method which learns measures; so many for 'random' too. "
        "Default: 2,400.",
    ),
]
Settings = Annotated[
    str | None,
    typer.Option(
        help="Of a method that learns: paper, what its paper says, or tuned. Default: tuned.",
        autocompletion=of(lambda: ("paper", "tuned")),
    ),
]
Grouping = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="What a method that learns places as one: none, prefix, colocation, heavy-edge or "
        "metis. Default: the method's own.",
        autocompletion=of(completions.groupings),
    ),
]
GroupCount = Annotated[
    int | None,
    typer.Option("--groups", min=1, max=10**6, help="Groups that heavy-edge or metis makes."),
]
Noise = Annotated[
    float | None,
    typer.Option(
        callback=not_negative,
        help="Standard deviation of the logarithm of simulated measurements that a method learns "
        "from. Default: 0.",
    ),
]
Evaluator = Annotated[
    str | None,
    typer.Option(
        help="What a method that learns measures placements with: simulator, or hardware, which "
        "runs them on this machine. Default: simulator.",
        autocompletion=of(lambda: ("simulator", "hardware")),
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        callback=_positive,
        help="Seconds after which a placement that runs on hardware has failed. Default: 60.",
    ),
]
CurvesFile = Annotated[
    str | None,
    typer.Option("--curves", metavar="FILE", help="Draw how methods learnt, as .svg or .png."),
]
TensorBoard = Annotated[
    str | None,
    typer.Option(
        "--tensorboard",
        metavar="FOLDER",
        help="Write the means, the best and the failures while methods learn, a run a method.",
    ),
]
Optimizer = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="Update of a captured training step: sgd, momentum, adam or adamw; adamw:clip=1.0 "
        "clips the gradients by their norm before.",
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
        help="Print what each device's memory will hold and how long a step will take, with the "
        "error of that, instead of the search's figures.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
