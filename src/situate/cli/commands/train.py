"""`situate train`: policies trained once, on many graphs."""

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli import names
from situate.cli.option_groups import option_class, with_options
from situate.cli.options import Json, Seed, Threads
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.solvers.evolutionary.regal.training.data_set import Machine
    from situate.solvers.evolutionary.regal.training.trainer import Point

app = typer.Typer(no_args_is_help=False)

POINT = ("steps", "reward", "validation")
"""Keys of a point of the curve, in JSON."""

LINKED = "linked"
"""Settings of a linkage, which learns from plans and not by REINFORCE."""

NAMES = ("paper", "paper_synthetic", "tuned", "gas", LINKED)


@app.callback(invoke_without_command=True)
def train(context: typer.Context) -> None:
    """Train a policy on many graphs, for methods that plan with it."""
    if context.invoked_subcommand is None:
        raise SituateError("Missing command: give 'regal'")


@option_class
class TrainingOptions:
    """The training to do, as typed."""

    data: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Folder with graph files to learn from in 'train', and others for validation in "
            "'valid'; without these folders, graph files.",
        ),
    ]
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the weights and the checkpoint, from which the same command goes on.",
        ),
    ]
    objective: Annotated[
        str,
        typer.Option(
            help="The quantity that plans minimise: time or memory.",
            autocompletion=names.complete_words("time", "memory"),
        ),
    ] = "time"
    cluster: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE|identical:N",
            help="The devices that plans are for: a preset, a TOML file, or N equal devices.",
            autocompletion=names.complete(names.presets),
        ),
    ] = "identical:2"
    rules: Annotated[
        str,
        typer.Option(
            help="Rules of execution: situate, regal, doppler or dnn-partitioning.",
            autocompletion=names.complete(names.rules),
        ),
    ] = "regal"
    settings: Annotated[
        str, typer.Option(help=f"Settings of the network and its training: {', '.join(NAMES)}.")
    ] = "tuned"
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**9,
            help="Steps of training, epochs in linked settings. Default: those of the settings.",
        ),
    ] = None
    copies: Annotated[
        int,
        typer.Option(min=0, max=9999, help="Copies of each graph, with noise on times and sizes."),
    ] = 0
    seed: Seed = 0
    threads: Threads = None
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|ray|ray:N|ray://HOST:PORT",
            help="Workers that run BRKGA in place of --threads: N processes of this machine, or "
            "those of a Ray cluster. The weights do not depend on them.",
        ),
    ] = None


@app.command()
@with_options
def regal(*, training: TrainingOptions, as_json: Json = False) -> None:
    """Train the network of the method regal.

    It learns for one objective and one number of devices. Ctrl-C ends the training; the same
    command goes on from the last point of its curve.
    """
    from pathlib import Path

    from situate.cli.answer import print_json
    from situate.cli.names import check_name
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
    objective = training.objective
    check_name(objective, OBJECTIVES, "objective")
    objectives = dict.fromkeys(goal for _, goal in SETTINGS)
    if objective not in objectives:
        raise SituateError(
            f"--objective {objective}: there are settings for {' and '.join(objectives)}"
        )
    check_name(training.settings, NAMES, "settings")
    check_folder(training.out)
    if training.workers is not None:
        Place.parse(training.workers)
    from situate.solvers.evolutionary.regal import weights
    from situate.solvers.evolutionary.regal.training.data_set import Machine
    from situate.solvers.evolutionary.regal.training.train import Options, train

    rules = find_rules(training.rules).name
    machine = Machine(Machines.find(training.cluster), rules, objective)
    if training.settings == LINKED:
        _train_linkage(training, machine, as_json)
        return
    options = Options(
        Path(training.data),
        Path(training.out),
        machine,
        training.settings,  # type: ignore[arg-type]
        training.steps,
        training.copies,
        training.seed,
        training.threads or usable_cpus(),
        shlex.join(["situate", *sys.argv[1:]]),
        training.workers,
    )
    path = train(options, note, lambda point: note(_line(point)))
    if as_json:
        curve = [dict(zip(POINT, point, strict=True)) for point in weights.read(path)[1].curve]
        print_json({"weights": str(path), "curve": curve})
    else:
        print(f"wrote {path}")


def _train_linkage(training: TrainingOptions, machine: "Machine", as_json: bool) -> None:
    """Train a linkage from plans of `auto`, in place of a policy by REINFORCE."""
    from pathlib import Path

    from situate.cli.answer import print_json
    from situate.cli.terminal import note
    from situate.solvers.evolutionary.regal.linkage import read
    from situate.solvers.evolutionary.regal.training.linkage import Options, train

    if training.copies or training.workers is not None:
        raise SituateError(f"--settings {LINKED}: takes no --copies and no --workers")
    options = Options(
        Path(training.data),
        Path(training.out),
        machine,
        seed=training.seed,
        command=shlex.join(["situate", *sys.argv[1:]]),
    )
    if training.steps is not None:
        options = replace(options, epochs=training.steps)
    path = train(options, note)
    if as_json:
        curve = [dict(zip(POINT, point, strict=True)) for point in read(path).origin.curve]
        print_json({"weights": str(path), "curve": curve})
    else:
        print(f"wrote {path}")


def _line(point: "Point") -> str:
    from situate.report.text import plural

    # NaN, the value without graphs for validation, differs from itself.
    is_nan = point.validation != point.validation
    validation = "" if is_nan else f", in validation {point.validation:.4f}"
    return f"{plural(point.steps, 'step')}: reward {point.reward:.4f}{validation}"
