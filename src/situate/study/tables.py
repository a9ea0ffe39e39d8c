"""The tables `counts`, `workers` and `checkpoint` of a study; every row has a checksum.

`counts` holds the number of rows of every other table, so that a missing row is noticed.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Origin
from situate.study.connection import damaged

State = Mapping[str, NDArray[np.generic]]
"""A learner's arrays, by name."""

COUNTS = (
    "CREATE TABLE counts (name TEXT PRIMARY KEY, rows INTEGER NOT NULL, checksum INTEGER NOT NULL)"
)
WORKERS = (
    "CREATE TABLE workers (number INTEGER PRIMARY KEY, place TEXT NOT NULL,"
    " reference REAL NOT NULL, pace REAL NOT NULL, checksum INTEGER NOT NULL)"
)
CHECKPOINT = (
    "CREATE TABLE checkpoint (name TEXT PRIMARY KEY, done INTEGER NOT NULL,"
    " array BLOB NOT NULL, checksum INTEGER NOT NULL)"
)


def write_count(connection: sqlite3.Connection, name: str, rows: int) -> None:
    """Set the number of rows of a table, in the caller's transaction."""
    row = name, rows, _count_checksum(name, rows)
    # The row is updated in place: the file's bytes do not tell how often it was written.
    connection.execute(
        "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
        " SET rows = excluded.rows, checksum = excluded.checksum",
        row,
    )


def read_count(connection: sqlite3.Connection, path: Path, name: str) -> int:
    """The number of rows of a table.

    Raises:
        ReadError: the count is damaged.
    """
    query = "SELECT rows, checksum FROM counts WHERE name = ?"
    rows, checksum = connection.execute(query, (name,)).fetchone() or (None, None)
    if not isinstance(rows, int) or checksum != _count_checksum(name, rows):
        raise damaged(path, f"the count of {name} in the study")
    return rows


def write_workers(connection: sqlite3.Connection, new: Sequence[Origin], first: int) -> None:
    """Add workers numbered from `first` on, in the caller's transaction."""
    rows = [
        (number, origin.place, origin.reference, origin.pace, _worker_checksum(number, origin))
        for number, origin in enumerate(new, start=first)
    ]
    connection.executemany("INSERT INTO workers VALUES (?, ?, ?, ?, ?)", rows)
    write_count(connection, "workers", first + len(rows))


def read_workers(connection: sqlite3.Connection, path: Path) -> list[Origin]:
    """The workers, by number.

    Raises:
        ReadError: a worker is missing or damaged.
    """
    origins: list[Origin] = []
    for number, *fields, checksum in connection.execute("SELECT * FROM workers ORDER BY number"):
        origin = Origin(*fields)
        if number != len(origins) or not _is_intact(number, origin, checksum):
            raise damaged(path, f"worker {number} of the study")
        origins.append(origin)
    if len(origins) != read_count(connection, path, "workers"):
        raise damaged(path, f"worker {len(origins)} of the study")
    return origins


def write_checkpoint(connection: sqlite3.Connection, samples_done: int, state: State) -> None:
    """Replace the checkpoint, in the caller's transaction."""
    connection.execute("DELETE FROM checkpoint")
    for name, array in state.items():
        stream = BytesIO()
        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
        data = stream.getvalue()
        row = name, samples_done, data, _array_checksum(name, samples_done, data)
        connection.execute("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", row)
    write_count(connection, "checkpoint", len(state))


def read_checkpoint(connection: sqlite3.Connection, path: Path) -> tuple[int, State | None]:
    """The number of samples that the learner has seen, and its state; 0 and None without any.

    Raises:
        ReadError: the checkpoint is damaged.
    """
    rows = connection.execute("SELECT * FROM checkpoint").fetchall()
    try:
        state = {
            name: _array(name, samples_done, data, checksum)
            for name, samples_done, data, checksum in rows
        }
        (samples_done,) = {row[1] for row in rows} or {0}
        if len(rows) != read_count(connection, path, "checkpoint"):
            raise ValueError("an array is missing")
    except Exception:  # numpy's reader of headers raises whatever Python's own parser does
        raise damaged(path, "the checkpoint of the study") from None
    return samples_done, state or None


def _array(name: str, samples_done: int, data: bytes, checksum: int) -> NDArray[np.generic]:
    typed = isinstance(name, str) and isinstance(samples_done, int)
    if not typed or checksum != _array_checksum(name, samples_done, data):
        raise ValueError("a damaged array")
    array: NDArray[np.generic] = np.lib.format.read_array(BytesIO(data), allow_pickle=False)
    return array


def _is_intact(number: int, origin: Origin, checksum: object) -> bool:
    # SQLite stores a value of any type in any column, so the fields may not even pack.
    try:
        return checksum == _worker_checksum(number, origin)
    except (struct.error, TypeError, AttributeError):
        return False


def _count_checksum(name: str, rows: int) -> int:
    return zlib.crc32(f"{name} {rows}".encode())


def _worker_checksum(number: int, origin: Origin) -> int:
    figures = struct.pack("<qdd", number, origin.reference, origin.pace)
    return zlib.crc32(origin.place.encode(), zlib.crc32(figures))


def _array_checksum(name: str, samples_done: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(f"{name} {samples_done}".encode()))
