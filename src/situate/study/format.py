"""The marks of an SQLite database that is a study: id, version, tables and header."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping
from pathlib import Path

from situate.errors import ReadError, SituateError
from situate.study import samples, tables
from situate.study.connection import damaged

APPLICATION = 0x53495455
"""SQLite's `application_id`: `SITU`."""

VERSION = 5
"""SQLite's `user_version`: the version of the format."""

TABLES = (
    "CREATE TABLE header (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL)",
    *(f"CREATE TABLE {name} ({samples.COLUMNS})" for name in samples.TABLES),
    tables.WORKERS,
    tables.CHECKPOINT,
    tables.COUNTS,
)


def is_new(connection: sqlite3.Connection) -> bool:
    """True if the database is empty, as a file of no bytes is."""
    count = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return not count and _mark(connection) == (0, 0)


def create(connection: sqlite3.Connection, header: Mapping[str, str]) -> None:
    """Make an empty database a study without samples, in the caller's transaction."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    rows = [(name, value, _checksum(name, value)) for name, value in header.items()]
    connection.executemany("INSERT INTO header VALUES (?, ?, ?)", rows)
    for name, count in (
        ("header", len(rows)),
        *((table, 0) for table in (*samples.TABLES, "workers", "checkpoint")),
    ):
        tables.write_count(connection, name, count)


def read_header(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """The header of a study.

    Raises:
        ReadError: a database of another program, a study of another format, or a damaged one.
    """
    application, version = _mark(connection)
    if application != APPLICATION:
        raise ReadError(f"{path}: a database of another program, not a study; give another file")
    if version != VERSION:
        raise ReadError(
            f"{path}: format {version} of a study, and this situate reads format {VERSION}; "
            "use the situate that made it, or give another file"
        )
    statements = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok" or {*TABLES} - statements:
        raise damaged(path, "the study")
    rows = connection.execute("SELECT name, value, checksum FROM header ORDER BY rowid").fetchall()
    for name, value, checksum in rows:
        if checksum != _checksum(name, value):
            raise damaged(path, f"{name!r} in the header of the study")
    if len(rows) != tables.read_count(connection, path, "header"):
        raise damaged(path, "the header of the study")
    return {name: value for name, value, _ in rows}


def check_header(stored: Mapping[str, str], expected: Mapping[str, str], path: Path) -> None:
    """Check that a study belongs to this search.

    Raises:
        SituateError: it belongs to another one; the message names the differing field.
    """
    for name in {**expected, **stored}:
        if stored.get(name) != expected.get(name):
            raise SituateError(
                f"{path}: the study has {name} {stored.get(name)!r} and this search "
                f"{expected.get(name)!r}; start the search as it was, or give it another file"
            )


def _checksum(name: object, value: object) -> int:
    return zlib.crc32(f"{name}\0{value}".encode())


def _mark(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]
