"""BERT-32 on A100s, as in the experiments of Piper (J. Tarnawski et al., NeurIPS 2021).

The folder is `inputs/` of the authors' repository.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

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

PUBLISHED: dict[tuple[int, int], float | None] = {
    (1, 8): None,
    (2, 8): None,
    (8, 8): 0.16585575,
    (80, 8): 0.1220072693,
    (1, 32): None,
    (2, 32): 0.0665495,
    (8, 32): 0.04151545044,
    (80, 32): 0.03084404821,
    (1, 64): None,
    (2, 64): 0.03203008123,
    (8, 64): 0.02020055029,
    (80, 64): 0.01565017802,
    (1, 128): 0.03887175,
    (2, 128): 0.01514640786,
    (8, 128): 0.01012088032,
    (80, 128): 0.008053242924,
    (1, 512): 0.008780040358,
    (2, 512): 0.00366752626,
    (8, 512): 0.002561127846,
    (80, 512): 0.002272520109,
    (2, 1024): 0.001840631522,
    (8, 1024): 0.001303179516,
    (2, 2048): 0.0009271841533,
}
"""By GiB of each device and number of devices, the seconds per micro-batch; None: no plan fits."""


def instances(folder: Path) -> list[Instance]:
    """One for each number of devices and memory.

    Raises:
        SituateError: the file is not there.
    """
    path = folder / FILE
    if not path.is_file():
        raise SituateError(f"{path}: no such file: it is in inputs/ of msr-fiddle/piper on GitHub")
    return [_instance(path, *setting) for setting in PUBLISHED]


def _instance(path: Path, memory: int, devices: int) -> Instance:
    seconds = PUBLISHED[memory, devices]
    return Instance(
        "piper",
        f"{devices} devices of {memory} GiB",
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
