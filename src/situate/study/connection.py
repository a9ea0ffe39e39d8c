"""Connections to study files, and one-line messages for SQLite's errors."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from situate.errors import ReadError, SituateError
from situate.files.contents import reason_of

LOCK_TIMEOUT = 0.5
"""Seconds to wait until another process releases the file."""

_NOT_A_STUDY = "not a study; give another file"
_IN_USE = "the study is in use by another process; wait until it ends, or give another file"
_NO_WRITING = "cannot be written; make the file and its folder writable, or copy it elsewhere"
_NO_ROOM = "cannot be written ({error}); make room and start again, what was measured is kept"
_DAMAGED = "the study is damaged; restore a copy of it, or give another file to start again"
_LINES: dict[int, tuple[type[SituateError], str]] = {
    sqlite3.SQLITE_BUSY: (SituateError, _IN_USE),
    sqlite3.SQLITE_LOCKED: (SituateError, _IN_USE),
    sqlite3.SQLITE_NOTADB: (ReadError, _NOT_A_STUDY),
    sqlite3.SQLITE_CORRUPT: (ReadError, _DAMAGED),
    sqlite3.SQLITE_READONLY: (SituateError, _NO_WRITING),
    sqlite3.SQLITE_PERM: (SituateError, _NO_WRITING),
    sqlite3.SQLITE_CANTOPEN: (
        SituateError,
        "cannot be opened; check that the file and its folder may be read and written",
    ),
    sqlite3.SQLITE_FULL: (SituateError, _NO_ROOM),
    sqlite3.SQLITE_IOERR: (SituateError, _NO_ROOM),
}


@contextmanager
def one_line(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into one line that names the file, the fault and the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        # The lower byte of an extended code is the primary one.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        family, line = _LINES.get(code, (ReadError, "not readable as a study ({error})"))
        message = str(error).encode("unicode_escape").decode()  # it may quote the file
        raise family(f"{path}: {line.format(error=message)}") from None
    except UnicodeDecodeError:
        raise damaged(path, "the study") from None


def damaged(path: Path, part: str) -> ReadError:
    """The error for a damaged part of a study."""
    return ReadError(f"{path}: {_DAMAGED.replace('the study', part)}")


def connect(path: Path, write: bool) -> sqlite3.Connection:
    """A connection without implicit transactions; with `write`, to a file that may be new.

    Raises:
        ReadError: the file does not exist, or is no file.
        SituateError: its folder does not exist, or it cannot be opened.
    """
    _check_place(path, write)
    uri = f"{Path(os.path.abspath(path)).as_uri()}?mode={'rwc' if write else 'ro'}"
    with one_line(path):
        return sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT, isolation_level=None)


def _check_place(path: Path, write: bool) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        if not write:
            raise ReadError(f"{path}: no such file") from None
        if not path.parent.is_dir():
            raise SituateError(
                f"{path}: there is no folder {str(path.parent)!r}: make it first"
            ) from None
    except (OSError, ValueError) as error:
        raise ReadError(f"{path}: {reason_of(error)}") from None
    else:
        _check_file(path, status, write)


def _check_file(path: Path, status: os.stat_result, write: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ReadError(f"{path}: is {kind}; a study is a file")
    # SQLite takes a file shorter than its shortest page for an empty one, and overwrites it.
    if 0 < status.st_size < 512:
        raise ReadError(f"{path}: {_NOT_A_STUDY}")
    # SQLite makes its journals beside the file, so the folder has to be writable too.
    if write and not (_writable(path) and _writable(path.parent)):
        raise SituateError(f"{path}: {_NO_WRITING}")


def _writable(path: Path) -> bool:
    # By default `access` asks for the real user, and files are opened as the effective one.
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
