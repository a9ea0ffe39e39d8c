"""A small study, for tests."""

from __future__ import annotations

import io
import os
import resource
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.study.file import NoStudy, StudyFile
from situate.study.samples import SampleTable

HEADER = {
    "graph": "chain 12ab",
    "method": "post",
    "seed": "0",
    "ops": "6",
    "devices": "3",
}
BATCH = 4
BATCHES = 6


def batch(first: int) -> tuple[NDArray[np.int32], Measurements]:
    """Placements and made-up measurements of the samples number `first` and on; the last fails."""
    rng = np.random.default_rng(first)
    seconds = rng.random(BATCH)
    seconds[-1] = np.inf
    outcome = np.array([0] * (BATCH - 1) + [1 + first % 4], np.uint8)
    return rng.integers(0, 3, (BATCH, 6)).astype(np.int32), Measurements(seconds, outcome)


def state() -> dict[str, NDArray[np.generic]]:
    """Arrays of several types and shapes."""
    return {
        "logits": np.arange(600.0).reshape(2, 300),
        "numbers": np.array([3, 0.1 + 0.2, -np.inf]),
        "none": np.empty((0, 4), np.int32),
        "count": np.array(7),
    }


def record(study: StudyFile | NoStudy, first: int, table: SampleTable = "samples") -> None:
    """Record the batch of the samples number `first` and on."""
    study.record(first + np.arange(BATCH), *batch(first), first, table)


def fill(study: StudyFile, batches: int = BATCHES) -> None:
    """Record batches and a checkpoint."""
    for first in range(0, batches * BATCH, BATCH):
        record(study, first)
    study.keep(batches * BATCH, state, now=True)


def make_study(path: Path, batches: int = BATCHES) -> Path:
    """A study with so many batches and a checkpoint, closed."""
    with StudyFile(path, HEADER) as study:
        fill(study, batches)
    return path


def content(study: StudyFile) -> list[bytes]:
    """All that a study gives a search: batch by batch, then the checkpoint."""
    samples_done, numbers = study.checkpoint()
    contents = []
    for first, placements, measurements in study.batches(2**40):
        parts = placements, measurements.seconds, measurements.outcome
        contents.append(b"".join([bytes([first]), *(part.tobytes() for part in parts)]))
    stream = io.BytesIO()
    np.savez(stream, done=np.array(samples_done), **(numbers or {}))  # type: ignore[arg-type]
    return [*contents, stream.getvalue()]


def refused(match: str, path: Path | str, family: type[SituateError] = SituateError) -> None:
    """In one line that names the file; the file is as it was."""
    before = Path(path).read_bytes() if os.path.isfile(path) else None
    with pytest.raises(family, match=match) as error:
        StudyFile(Path(path), HEADER)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"{path}: ")
    assert (Path(path).read_bytes() if os.path.isfile(path) else None) == before


def with_header(path: Path, **values: str) -> None:
    """A study whose header says something else, under the checksum that it then has."""
    for name, value in values.items():
        checksum = zlib.crc32(f"{name}\0{value}".encode())
        edited(
            path, "UPDATE header SET value = ?, checksum = ? WHERE name = ?", value, checksum, name
        )


def edited(path: Path, statement: str, *values: object, then: str = "") -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    if then:
        connection.execute(then)
    connection.commit()
    connection.close()


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
