"""The table `workers`: who measured, where workers are told apart; every row with a checksum."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from situate.evaluators.measurements import Origin
from situate.study import counts
from situate.study.connection import damaged

TABLE = (
    "CREATE TABLE workers (number INTEGER PRIMARY KEY, place TEXT NOT NULL,"
    " reference REAL NOT NULL, pace REAL NOT NULL, checksum INTEGER NOT NULL)"
)


def write(connection: sqlite3.Connection, new: Sequence[Origin], first: int) -> None:
    """Add workers, of number `first` and on, in the caller's transaction."""
    rows = [
        (number, origin.place, origin.reference, origin.pace, _checksum(number, origin))
        for number, origin in enumerate(new, start=first)
    ]
    connection.executemany("INSERT INTO workers VALUES (?, ?, ?, ?, ?)", rows)
    counts.write(connection, "workers", first + len(rows))


def read(connection: sqlite3.Connection, path: Path) -> list[Origin]:
    """The workers, by their numbers.

    Raises:
        ReadError: one is missing, or not as it was written.
    """
    origins: list[Origin] = []
    for number, *rest, checksum in connection.execute("SELECT * FROM workers ORDER BY number"):
        origin = Origin(*rest)
        if number != len(origins) or not _intact(number, origin, checksum):
            raise damaged(path, f"worker {number} of the study")
        origins.append(origin)
    if len(origins) != counts.read(connection, path, "workers"):
        raise damaged(path, f"worker {len(origins)} of the study")
    return origins


def _intact(number: int, origin: Origin, checksum: object) -> bool:
    try:
        return checksum == _checksum(number, origin)
    except (struct.error, TypeError, AttributeError):
        return False


def _checksum(number: int, origin: Origin) -> int:
    figures = struct.pack("<qdd", number, origin.reference, origin.pace)
    return zlib.crc32(origin.place.encode(), zlib.crc32(figures))
