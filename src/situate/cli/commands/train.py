"""`situate train`: policies that are trained once, on many graphs."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli import completions
from situate.cli.completions import of
from situate.cli.options import Json, Seed, Threads
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.solvers.evolutionary.regal.training.trainer import Point

app = typer.Typer(no_args_is_help=False)

POINT = ("steps", "reward", "validation")
"""A point of a curve, as JSON has it."""

NAMES = ("paper", "paper_synthetic", "tuned", "gas")


@app.callback(invoke_without_command=True)
def train(context: typer.Context) -> None:
    """Train a policy on many graphs, for methods that plan with it."""
    if context.invoked_subcommand is None:
        raise SituateError("Missing command: give 'regal'")


@app.command()
def regal(
    data: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Graph files to learn from in its folder 'train', and others for validation in "
            "'valid'; without these, graph files.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the weights and the checkpoint; the same command goes on from it.",
        ),
    ],
    objective: Annotated[
        str,
        typer.Option(
            help="What plans are to be best in: time or memory.",
            autocompletion=of(lambda: ("time", "memory")),
        ),
    ] = "time",
    cluster: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE|identical:N",
            help="The devices that plans are for: a preset, a TOML file, or N equal devices.",
            autocompletion=of(completions.presets),
        ),
    ] = "identical:2",
    rules: Annotated[
        str,
        typer.Option(
            help="Rules of execution: situate, regal, doppler or dnn-partitioning.",
            autocompletion=of(completions.rules),
        ),
    ] = "regal",
    settings: Annotated[
        str, typer.Option(help=f"Settings of the network and its training: {', '.join(NAMES)}.")
    ] = "tuned",
    steps: Annotated[
        int | None,
        typer.Option(min=1, max=10**9, help="Steps of training. Default: those of the settings."),
    ] = None,
    copies: Annotated[
        int,
        typer.Option(min=0, max=9999, help="Copies of each graph, with noise on times and sizes."),
    ] = 0,
    seed: Seed = 0,
    threads: Threads = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|ray|ray:N|ray://HOST:PORT",
            help="Workers that run BRKGA in place of --threads: so many processes of this machine, "
            "or a Ray cluster's. The weights do not depend on them.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train the network with which regal plans.

    It learns for one objective and one number of devices. Ctrl-C ends the training; the same
    command goes on from the last point of its curve.
    """
    from pathlib import Path

    from situate.cli.answer import print_json
    from situate.cli.inputs import check_name
    from situate.cli.outputs import check_folder
    from situate.cli.terminal import note
    from situate.data.cluster import Cluster as Machines
    from situate.data.problem import OBJECTIVES
    from situate.data.rules import find_rules
    from situate.evaluators.workers.places import Place
    from situate.host.machine import usable_cpus
    from situate.policies.installed import check_torch
    from situate.solvers.evolutionary.regal.settings import SETTINGS

    check_torch("safetensors")
    check_name(objective, OBJECTIVES, "objective")
    trained = dict.fromkeys(goal for _, goal in SETTINGS)
    if objective not in trained:
        known = " and ".join(trained)
        raise SituateError(f"--objective {objective}: there are settings for {known}")
    check_name(settings, NAMES, "settings")
    check_folder(out)
    if workers is not None:
        Place.parse(workers)
    from situate.solvers.evolutionary.regal import weights
    from situate.solvers.evolutionary.regal.training.data_set import Machine
    from situate.solvers.evolutionary.regal.training.train import Options, train

    machine = Machine(Machines.find(cluster), find_rules(rules).name, objective)
    options = Options(
        Path(data),
        Path(out),
        machine,
        settings,  # type: ignore[arg-type]
        steps,
        copies,
        seed,
        threads or usable_cpus(),
        shlex.join(["situate", *sys.argv[1:]]),
        workers,
    )
    path = train(options, note, lambda point: note(_line(point)))
    if as_json:
        curve = [dict(zip(POINT, point, strict=True)) for point in weights.read(path)[1].curve]
        print_json({"weights": str(path), "curve": curve})
    else:
        print(f"wrote {path}")


def _line(point: Point) -> str:
    from situate.report.text import plural

    known = point.validation == point.validation
    validation = f", in validation {point.validation:.4f}" if known else ""
    return f"{plural(point.steps, 'step')}: reward {point.reward:.4f}{validation}"
