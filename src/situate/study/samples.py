"""The tables `samples` and `finals`: what was measured of which placement, every row with a
checksum."""

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

from situate.evaluators.measurements import OUTCOMES, Measurements
from situate.study import counts
from situate.study.connection import damaged
from situate.study.packing import Packing

Of = Literal["samples", "finals"]
"""The table of a search's samples, or of what it measures again in the end."""

TABLES: tuple[Of, ...] = ("samples", "finals")

Row = tuple[int, int, float | None, str, bytes, int]


@dataclass(frozen=True)
class Sample:
    """A placement and what was measured of it.

    Attributes:
        number: 0 for the first of a study.
        batch: number of the first of the samples that were asked for together.
        seconds: time of a step; infinite where none was completed.
        outcome: index into `OUTCOMES`.
        packed: the placement, see `Packing`.
    """

    number: int
    batch: int
    seconds: float
    outcome: int
    packed: bytes


def write(
    connection: sqlite3.Connection,
    first: int,
    packed: Sequence[bytes],
    measured: Measurements,
    batch: int,
    of: Of = "samples",
) -> None:
    """Add the samples number `first` and on, of one batch, in the caller's transaction."""
    rows = _rows(first, packed, measured, batch)
    connection.executemany(f"INSERT INTO {of} VALUES (?, ?, ?, ?, ?, ?)", rows)
    counts.write(connection, of, first + len(packed))


def checked_count(connection: sqlite3.Connection, path: Path, of: Of) -> int:
    """The number of samples, once each was checked to be as it was written.

    Raises:
        ReadError: one is missing, one is more than there were, or one is not as it was written.
    """
    return sum(1 for _ in _read(connection, path, 0, 2**62, of))


def read(
    connection: sqlite3.Connection,
    path: Path,
    first: int = 0,
    end: int = 2**62,
    of: Of = "samples",
) -> list[Sample]:
    """The samples number `first` and on, before `end`.

    Raises:
        ReadError: one is missing, or not as it was written.
    """
    return list(_read(connection, path, first, end, of))


def _read(
    connection: sqlite3.Connection, path: Path, first: int, end: int, of: Of
) -> Iterator[Sample]:
    """As `read`, one after the other."""
    query = f"SELECT * FROM {of} WHERE number >= ? AND number < ? ORDER BY number"
    rows = connection.execute(query, (first, end))
    for number in range(first, min(end, counts.read(connection, path, of))):
        sample = _sample(row) if (row := rows.fetchone()) else None
        if sample is None or sample.number != number:
            raise damaged(path, f"sample {number} of the study")
        yield sample
    if (row := rows.fetchone()) is not None:
        raise damaged(path, f"the study, which has a sample {row[0]} that was not measured,")


def measurements(samples: Sequence[Sample]) -> Measurements:
    """The measurements of samples."""
    return Measurements(
        np.array([sample.seconds for sample in samples], np.float64),
        np.array([sample.outcome for sample in samples], np.uint8),
    )


def placements(samples: Sequence[Sample], packing: Packing, path: Path) -> NDArray[np.int32]:
    """The placements (k, n).

    Raises:
        ReadError: one is none of this study's graph and cluster.
    """
    rows = []
    for sample in samples:
        try:
            rows.append(packing.unpack(sample.packed))
        except ValueError:
            raise damaged(path, f"sample {sample.number} of the study") from None
    return np.array(rows, np.int32).reshape(len(rows), packing.ops)


def _rows(first: int, packed: Sequence[bytes], measured: Measurements, batch: int) -> Iterator[Row]:
    for number, seconds in enumerate(measured.seconds.tolist(), first):
        outcome, placement = OUTCOMES[measured.outcome[number - first]], packed[number - first]
        checksum = _checksum(number, batch, seconds, outcome, placement)
        yield number, batch, None if seconds == np.inf else seconds, outcome, placement, checksum


def _sample(row: Row) -> Sample | None:
    """The sample, or None if the row is not as it was written."""
    number, batch, finite, outcome, packed, checksum = row
    seconds = np.inf if finite is None else finite
    try:
        intact = checksum == _checksum(number, batch, seconds, outcome, packed)
    except (struct.error, TypeError, AttributeError):
        return None
    if not intact or outcome not in OUTCOMES:
        return None
    return Sample(number, batch, seconds, OUTCOMES.index(outcome), packed)


def _checksum(number: int, batch: int, seconds: float, outcome: str, packed: bytes) -> int:
    numbers = struct.pack("<qqd", number, batch, seconds)
    return zlib.crc32(packed, zlib.crc32(outcome.encode(), zlib.crc32(numbers)))
