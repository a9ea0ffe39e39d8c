"""Training from folders of graphs to a file of weights, resumable from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path

import msgspec

from situate.data.problem import Objective, Problem
from situate.errors import SituateError
from situate.policies.arithmetic import arithmetic
from situate.solvers.evolutionary.brkga import check_problem
from situate.solvers.evolutionary.regal import weights
from situate.solvers.evolutionary.regal.settings import SETTINGS, Name, RegalSettings
from situate.solvers.evolutionary.regal.training import checkpoint
from situate.solvers.evolutionary.regal.training.data_set import DataSet, Machine, read_data
from situate.solvers.evolutionary.regal.training.instances import Instances, Trials, trials
from situate.solvers.evolutionary.regal.training.trainer import Point, Trainer, generator
from situate.version import VERSION

CHECKPOINT, WEIGHTS = "checkpoint.npz", "weights.safetensors"
"""Names of the files in the folder of a training."""

POINT_STEPS = 500
"""Default number of steps between two points of the curve; each point is written."""


@dataclass(frozen=True)
class Options:
    """Options of a training.

    Attributes:
        data: a folder of graph files; or one with the folders `train` and, for validation, `valid`.
        out: output folder, created if missing.
        machine: of the problems.
        settings: a name, or the settings themselves.
        steps: of training; None for those of the settings.
        copies: number of noisy copies of each graph.
        seed: of all draws.
        threads: that run BRKGA without workers.
        command: to record in the weights.
        workers: that run BRKGA, see `Learning.workers`; None for this process.
        every: steps between two points of the curve; None for `POINT_STEPS`.
    """

    data: Path
    out: Path
    machine: Machine
    settings: Name | RegalSettings = "tuned"
    steps: int | None = None
    copies: int = 0
    seed: int = 0
    threads: int = 1
    command: str = ""
    workers: int | str | None = None
    every: int | None = None


def train(
    options: Options, report: Callable[[str], None], on_point: Callable[[Point], None]
) -> Path:
    """Train, write weights at each point of the curve, and return the path of their file.

    Args:
        options: of the training.
        report: called with lines about the data.
        on_point: called with each point of the curve.

    Raises:
        SituateError: no data; a different training in the folder; a machine that no policy can
            plan for; a file that cannot be written.
    """
    settings = options.settings
    if not isinstance(settings, RegalSettings):
        settings = settings_of(settings, options.machine.objective)
    train_set, valid_set = _data(options, report)
    _check(options.machine.problem(train_set.graphs[0]))
    with arithmetic():
        training, validation = _instances(options, settings, train_set, valid_set)
        sets = [instances for instances in (training, validation) if instances is not None]
        with trials(options.workers, options.threads, sets) as running:
            trainer = _trainer(options, settings, training, validation, running)
            about = _about(options, settings, train_set)
            _run(trainer, options, about, _identity(options, about, valid_set), on_point)
    return options.out / WEIGHTS


def settings_of(name: Name, objective: Objective) -> RegalSettings:
    """
    Raises:
        SituateError: there are no settings of that name for the objective.
    """
    settings = SETTINGS.get((name, objective))
    if settings is None:
        names = ", ".join(f"{name} for {objective}" for name, objective in SETTINGS)
        raise SituateError(f"settings: none of name {name!r} for {objective}; there are {names}")
    return settings


def _data(options: Options, report: Callable[[str], None]) -> tuple[DataSet, DataSet | None]:
    """(graphs to learn from, disjoint graphs for validation or None)."""
    folder, hashes = options.data, set[str]()
    read_folder = partial(read_data, machine=options.machine, report=report, hashes=hashes)
    if not (folder / "train").is_dir():
        return read_folder(folder), None
    train_set = read_folder(folder / "train")
    return train_set, read_folder(folder / "valid") if (folder / "valid").is_dir() else None


def _check(problem: Problem) -> None:
    """
    Raises:
        SituateError: no trained policy could plan for such a problem.
    """
    check_problem(problem)
    if problem.d > weights.MOST_DEVICES:
        raise SituateError(
            f"cluster {problem.cluster.name!r}: has {problem.d} devices, and weights are for "
            f"{weights.MOST_DEVICES} at most: give a smaller one"
        )


def _instances(
    options: Options, settings: RegalSettings, train_set: DataSet, valid_set: DataSet | None
) -> tuple[Instances, Instances | None]:
    machine, seed = options.machine, options.seed
    training = Instances(train_set.graphs, machine, settings, options.copies, seed)
    if valid_set is None:
        return training, None
    return training, Instances(valid_set.graphs, machine, settings.in_validation, 0, seed)


def _trainer(
    options: Options,
    settings: RegalSettings,
    training: Instances,
    validation: Instances | None,
    running: Trials,
) -> Trainer:
    machine, seed = options.machine, options.seed
    policy = weights.new_policy(
        machine.objective, len(machine.cluster.devices), settings, generator(seed, 0)
    )
    return Trainer(policy, training, validation, settings, seed, running)


def _run(
    trainer: Trainer,
    options: Options,
    about: weights.About,
    identity: checkpoint.Training,
    on_point: Callable[[Point], None],
) -> None:
    path = options.out / CHECKPOINT
    make_folder(options.out)
    state = checkpoint.read(path, identity)
    if state is not None:
        if not checkpoint.is_sound(state, trainer.state()):
            raise checkpoint.damaged(path)
        trainer.restore(state)

    def keep(point: Point) -> None:
        checkpoint.write(path, identity, trainer.state())
        _write(trainer, options, about)
        on_point(point)

    steps = about.settings.steps if options.steps is None else options.steps
    trainer.run(steps, options.every or POINT_STEPS, keep)
    _write(trainer, options, about)


def make_folder(path: Path) -> None:
    """Make the output folder of a training, if it is missing.

    Raises:
        SituateError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SituateError(f"{path}: cannot be made: {error.strerror or error}") from None


def _write(trainer: Trainer, options: Options, about: weights.About) -> None:
    curve = [
        (p.steps, p.reward, None if isnan(p.validation) else p.validation) for p in trainer.curve
    ]
    complete = msgspec.structs.replace(about, steps=trainer.step, curve=curve)
    weights.write(options.out / WEIGHTS, trainer.best(), complete)


def _about(options: Options, settings: RegalSettings, data: DataSet) -> weights.About:
    machine = options.machine
    return weights.About(
        objective=machine.objective,
        devices=len(machine.cluster.devices),
        settings=settings,
        data=data.hash,
        command=options.command,
        situate=VERSION,
        steps=0,
    )


def _identity(
    options: Options, about: weights.About, valid_set: DataSet | None
) -> checkpoint.Training:
    """Settings that must match for a checkpoint to be resumed, by name."""
    return {
        "objective": about.objective,
        "data": about.data,
        "validation": None if valid_set is None else valid_set.hash,
        "cluster": options.machine.cluster.hash,
        "rules": options.machine.rules,
        "settings": about.settings,
        "copies": options.copies,
        "seed": options.seed,
        # A span begins after its predecessor is learnt from, so its length changes the samples.
        "points": options.every or POINT_STEPS,
    }
