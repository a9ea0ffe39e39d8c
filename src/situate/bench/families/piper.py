"""BERT-32 on A100s, as in the experiments of Piper (J. Tarnawski et al., NeurIPS 2021).

The folder is `inputs/` of the authors' repository.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from situate.bench.instances import Instance, ReferenceValue
from situate.errors import SituateError
from situate.sharding import StageProblem, read_stage_problem

FILE = "bert32a100.json"
SOURCE = "Piper, NeurIPS 2021, its own program"
GIB = 2**30
BANDWIDTH = 25 * GIB
"""Bytes a second of each device, which the authors' program sets; their file has 25e9."""

BATCHES = 1920
TIME_LIMIT = 10.0


class _Published(NamedTuple):
    """Seconds of an experiment; None: no plan fits.

    Attributes:
        piper: per micro-batch, with Piper's plan.
        equal: the same with stages of as many layers each and equal degrees, at their best.
        planning: of Piper's own program.
    """

    piper: float | None
    equal: float | None
    planning: float


PUBLISHED = {
    (1, 8): _Published(None, None, 0.04),
    (2, 8): _Published(None, None, 0.04),
    (8, 8): _Published(0.16585575, 0.230978, 0.04),
    (80, 8): _Published(0.1220072693, 0.1220072693, 0.04),
    (1, 32): _Published(None, None, 0.09),
    (2, 32): _Published(0.0665495, None, 0.09),
    (8, 32): _Published(0.04151545044, 0.05135108894, 0.11),
    (80, 32): _Published(0.03084404821, 0.03084404821, 0.14),
    (1, 64): _Published(None, None, 0.14),
    (2, 64): _Published(0.03203008123, 0.12333875, 0.15),
    (8, 64): _Published(0.02020055029, 0.02572454783, 0.19),
    (80, 64): _Published(0.01565017802, 0.01565017802, 0.28),
    (1, 128): _Published(0.03887175, None, 0.26),
    (2, 128): _Published(0.01514640786, 0.04825731185, 0.28),
    (8, 128): _Published(0.01012088032, 0.01291127728, 0.35),
    (80, 128): _Published(0.008053242924, 0.008053242924, 0.57),
    (1, 512): _Published(0.008780040358, None, 2.86),
    (2, 512): _Published(0.00366752626, 0.01207555379, 2.7),
    (8, 512): _Published(0.002561127846, 0.003301324364, 2.41),
    (80, 512): _Published(0.002272520109, 0.002414786788, 3.1),
    (2, 1024): _Published(0.001840631522, 0.006045260779, 13.17),
    (8, 1024): _Published(0.001303179516, 0.001699665544, 9.87),
    (2, 2048): _Published(0.0009271841533, 0.003030114274, 51.58),
}
"""By GiB of each device and number of devices; by the authors' program on two cores."""


def instances(folder: Path) -> list[Instance]:
    """One for each number of devices and memory.

    Raises:
        SituateError: the file is not there.
    """
    path = folder / FILE
    if not path.is_file():
        raise SituateError(f"{path}: no such file: it is in inputs/ of msr-fiddle/piper on GitHub")
    return [_instance(path, *setting) for setting in PUBLISHED]


def instance_name(memory: int, devices: int) -> str:
    """The name of the instance of so many GiB and devices."""
    return f"{devices} devices of {memory} GiB"


def _instance(path: Path, memory: int, devices: int) -> Instance:
    seconds = PUBLISHED[memory, devices].piper
    return Instance(
        "piper",
        instance_name(memory, devices),
        partial(_problem, path, memory, devices),
        None if seconds is None else ReferenceValue(seconds, SOURCE),
        TIME_LIMIT,
    )


def _problem(path: Path, memory: int, devices: int) -> StageProblem:
    return replace(
        read_stage_problem(path),
        devices=devices,
        memory=float(memory * GIB),
        bandwidth=float(BANDWIDTH),
        batches=BATCHES,
    )
