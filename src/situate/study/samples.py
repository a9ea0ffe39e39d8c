"""The tables `samples`, `again` and `finals`: what was measured of which placement, and by whom;
every row with a checksum."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import OUTCOMES, Measurements, Origin
from situate.study import counts
from situate.study.connection import damaged
from situate.study.packing import Packing

Of = Literal["samples", "again", "finals"]
"""The table of a search's samples, of what was measured again before it counted as the best, or of
what is measured again in the end."""

TABLES: tuple[Of, ...] = ("samples", "again", "finals")

COLUMNS = (
    "number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, seconds REAL, outcome TEXT NOT NULL, "
    "placement BLOB NOT NULL, worker INTEGER, checksum INTEGER NOT NULL"
)

Row = tuple[int, int, float | None, str, bytes, int | None, int]


@dataclass(frozen=True)
class Sample:
    """A placement and what was measured of it.

    Attributes:
        number: 0 for the first of a study.
        batch: number of the first of the samples that were asked for together.
        seconds: time of a step; infinite where none was completed.
        outcome: index into `OUTCOMES`.
        packed: the placement, see `Packing`.
        worker: the number of who measured it; None where workers are not told apart.
    """

    number: int
    batch: int
    seconds: float
    outcome: int
    packed: bytes
    worker: int | None


def write(
    connection: sqlite3.Connection,
    numbers: Sequence[int],
    packed: Sequence[bytes],
    measurements: Measurements,
    workers: Sequence[int | None],
    batch: int,
    count: int,
    of: Of = "samples",
) -> None:
    """Add the samples of these numbers, all of one batch, in the caller's transaction.

    Args:
        workers: who measured each, see `Sample`.
        count: how many samples there are then.
    """
    rows = _rows(numbers, packed, measurements, workers, batch)
    connection.executemany(f"INSERT INTO {of} VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    counts.write(connection, of, count)


def check(connection: sqlite3.Connection, path: Path, of: Of = "samples") -> tuple[int, int]:
    """The number of samples, and how many there are before the first that is missing: those of the
    last batch may have been measured in any order.

    Raises:
        ReadError: one is missing, one is more than there were, or one is not as it was written.
    """
    count, missing = 0, None
    for sample in _read(connection, path, 0, 2**62, of):
        if missing is None and sample.number != count:
            missing = count
        if missing is not None and sample.batch > missing:
            raise damaged(path, f"sample {missing} of the study")
        count += 1
    complete = count if missing is None else missing
    expected = counts.read(connection, path, of)
    if count < expected:
        raise damaged(path, f"sample {complete} of the study")
    if count > expected:
        raise damaged(path, f"the study, which has {count - expected} samples too many,")
    return count, complete


def read(
    connection: sqlite3.Connection,
    path: Path,
    first: int = 0,
    end: int = 2**62,
    of: Of = "samples",
) -> list[Sample]:
    """The samples from number `first` to before `end`.

    Raises:
        ReadError: a sample is damaged.
    """
    return list(_read(connection, path, first, end, of))


def _read(
    connection: sqlite3.Connection, path: Path, first: int, end: int, of: Of
) -> Iterator[Sample]:
    """The same samples as `read`, one by one."""
    query = f"SELECT * FROM {of} WHERE number >= ? AND number < ? ORDER BY number"
    for row in connection.execute(query, (first, end)):
        sample = _sample(row)
        if sample is None:
            raise damaged(path, f"sample {row[0]} of the study")
        yield sample


def measurements(samples: Sequence[Sample], workers: Sequence[Origin] = ()) -> Measurements:
    """The measurements of samples; `workers` are the origins by worker number."""
    origins = [None if sample.worker is None else workers[sample.worker] for sample in samples]
    return Measurements(
        np.array([sample.seconds for sample in samples], np.float64),
        np.array([sample.outcome for sample in samples], np.uint8),
        tuple(origins) if any(origins) else (),
    )


def placements(samples: Sequence[Sample], packing: Packing, path: Path) -> NDArray[np.int32]:
    """The placements (k, n).

    Raises:
        ReadError: a placement does not match this study's graph and cluster.
    """
    rows = []
    for sample in samples:
        try:
            rows.append(packing.unpack(sample.packed))
        except ValueError:
            raise damaged(path, f"sample {sample.number} of the study") from None
    return np.array(rows, np.int32).reshape(len(rows), packing.ops)


def _rows(
    numbers: Sequence[int],
    packed: Sequence[bytes],
    measurements: Measurements,
    workers: Sequence[int | None],
    batch: int,
) -> Iterator[Row]:
    durations, outcomes = measurements.seconds.tolist(), measurements.outcome.tolist()
    columns = zip(numbers, packed, durations, outcomes, workers, strict=True)
    for number, placement, seconds, index, worker in columns:
        outcome = OUTCOMES[index]
        checksum = _checksum(number, batch, seconds, outcome, placement, worker)
        finite = None if seconds == np.inf else seconds
        yield number, batch, finite, outcome, placement, worker, checksum


def _sample(row: Row) -> Sample | None:
    """The sample, or None if the row is damaged."""
    number, batch, finite, outcome, packed, worker, checksum = row
    seconds = np.inf if finite is None else finite
    try:
        intact = checksum == _checksum(number, batch, seconds, outcome, packed, worker)
    except (struct.error, TypeError, AttributeError):
        return None
    if not intact or outcome not in OUTCOMES:
        return None
    return Sample(number, batch, seconds, OUTCOMES.index(outcome), packed, worker)


def _checksum(
    number: int, batch: int, seconds: float, outcome: str, packed: bytes, worker: int | None
) -> int:
    numbers = struct.pack("<qqdq", number, batch, seconds, -1 if worker is None else worker)
    return zlib.crc32(packed, zlib.crc32(outcome.encode(), zlib.crc32(numbers)))
