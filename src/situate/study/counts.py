"""The table `counts`: how many rows each of the others has, so that a missing one is noticed."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from situate.study.connection import damaged

TABLE = (
    "CREATE TABLE counts (name TEXT PRIMARY KEY, rows INTEGER NOT NULL, checksum INTEGER NOT NULL)"
)


def write(connection: sqlite3.Connection, name: str, rows: int) -> None:
    """Say how many rows a table has, in the caller's transaction."""
    row = name, rows, _checksum(name, rows)
    # A row that is there stays where it is: the file does not tell how often it was written.
    connection.execute(
        "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
        " SET rows = excluded.rows, checksum = excluded.checksum",
        row,
    )


def read(connection: sqlite3.Connection, path: Path, name: str) -> int:
    """The number of rows of a table.

    Raises:
        ReadError: the count is not as it was written.
    """
    query = "SELECT rows, checksum FROM counts WHERE name = ?"
    rows, checksum = connection.execute(query, (name,)).fetchone() or (None, None)
    if not isinstance(rows, int) or checksum != _checksum(name, rows):
        raise damaged(path, f"the count of {name} in the study")
    return rows


def _checksum(name: str, rows: int) -> int:
    return zlib.crc32(f"{name} {rows}".encode())
