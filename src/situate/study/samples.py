"""The tables `samples`, `again` and `finals`: placements and their measurements.

Every row has a checksum.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import OUTCOMES, Measurements, Origin
from situate.study.connection import damaged
from situate.study.tables import read_count, write_count

SampleTable = Literal["samples", "again", "finals"]
"""The table of a search's samples, of second measurements of placements that would become the best,
or of the final repetition of the finalists."""

TABLES: tuple[SampleTable, ...] = ("samples", "again", "finals")

COLUMNS = (
    "number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, seconds REAL, outcome TEXT NOT NULL, "
    "placement BLOB NOT NULL, worker INTEGER, checksum INTEGER NOT NULL"
)

Row = tuple[int, int, float | None, str, bytes, int | None, int]


@dataclass(frozen=True)
class Packing:
    """The bytes of a placement: one device index for each of `ops` ops, compressed by zlib.

    An index is an unsigned byte, or two bytes, lower first, for more than 256 `devices`.
    """

    ops: int
    devices: int

    @classmethod
    def of(cls, header: Mapping[str, str]) -> Packing:
        """The packing in a study with this header.

        Raises:
            ValueError: the header lacks a valid number of ops or devices.
        """
        ops, devices = int(header.get("ops", "")), int(header.get("devices", ""))
        if not (0 < ops < 2**31 and 0 < devices <= 2**16):
            raise ValueError(f"no study has {ops} ops on {devices} devices")
        return cls(ops, devices)

    def pack(self, placements: NDArray[np.int32]) -> list[bytes]:
        """The bytes of each of the placements (k, n)."""
        # Level 6 would take up to 14 times as long as level 1 to save a few bytes.
        return [zlib.compress(row, 1) for row in placements.astype(self._dtype)]

    def unpack(self, packed: bytes) -> NDArray[np.int32]:
        """A placement (n,).

        Raises:
            ValueError: the bytes are no placement of `ops` ops on `devices` devices.
        """
        size = self.ops * self._dtype.itemsize
        try:
            # One byte more than expected reveals a longer row without unpacking all of it.
            data = zlib.decompressobj().decompress(packed, size + 1)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        if len(data) != size:
            raise ValueError("a placement of another number of ops")
        placement = np.frombuffer(data, self._dtype).astype(np.int32)
        if placement.max(initial=0) >= self.devices:
            raise ValueError("a placement on unknown devices")
        return placement

    @property
    def _dtype(self) -> np.dtype[np.unsignedinteger]:
        return np.dtype("<u1" if self.devices <= 256 else "<u2")


@dataclass(frozen=True)
class Sample:
    """A placement and its measurement.

    Attributes:
        number: 0 for the first of a study.
        batch: number of the first sample of its batch.
        seconds: time of a step; infinite if none was completed.
        outcome: index into `OUTCOMES`.
        packed: the placement, see `Packing`.
        worker: number of the worker that measured it; None if workers are not distinguished.
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
    table: SampleTable = "samples",
) -> None:
    """Add samples of one batch, in the caller's transaction.

    Args:
        numbers: of the samples.
        packed: their placements, see `Packing`.
        workers: the worker of each, see `Sample`.
        batch: number of the first sample of the batch.
        count: number of samples in the table afterwards.
    """
    rows = _rows(numbers, packed, measurements, workers, batch)
    connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    write_count(connection, table, count)


def measures_batches_together(header: Mapping[str, str]) -> bool:
    """True if controllers measure several batches at once, by the wall clock."""
    return header.get("controllers", "").split(", ")[1:2] == ["wall"]


def check(
    connection: sqlite3.Connection,
    path: Path,
    table: SampleTable = "samples",
    together: bool = False,
) -> tuple[int, int]:
    """The number of samples, and the number before the first missing one.

    Samples of the last batch may be measured in any order, so some of them may be missing.

    Args:
        together: True if samples of several batches may be missing; see
            `measures_batches_together`.

    Raises:
        ReadError: a sample is missing from an earlier batch, there are too many, or one is damaged.
    """
    count, missing = 0, None
    for sample in _read_rows(connection, path, 0, 2**62, table):
        if missing is None and sample.number != count:
            missing = count
        if missing is not None and sample.batch > missing and not together:
            raise damaged(path, f"sample {missing} of the study")
        count += 1
    complete = count if missing is None else missing
    expected = read_count(connection, path, table)
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
    table: SampleTable = "samples",
) -> list[Sample]:
    """The samples from number `first` to before `end`.

    Raises:
        ReadError: a sample is damaged.
    """
    return list(_read_rows(connection, path, first, end, table))


def _read_rows(
    connection: sqlite3.Connection, path: Path, first: int, end: int, table: SampleTable
) -> Iterator[Sample]:
    """The samples of `read`, one by one."""
    query = f"SELECT * FROM {table} WHERE number >= ? AND number < ? ORDER BY number"
    for row in connection.execute(query, (first, end)):
        sample = _sample_from_row(row)
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


def _sample_from_row(row: Row) -> Sample | None:
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
    # Little-endian with fixed widths, so that checksums hold on any machine.
    numbers = struct.pack("<qqdq", number, batch, seconds, -1 if worker is None else worker)
    return zlib.crc32(packed, zlib.crc32(outcome.encode(), zlib.crc32(numbers)))
