"""The table `checkpoint`: the learner's arrays as they were after some sample."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from situate.study import counts
from situate.study.connection import damaged

State = Mapping[str, NDArray[np.generic]]


def write(connection: sqlite3.Connection, samples_done: int, state: State) -> None:
    """Replace the checkpoint, in the caller's transaction."""
    connection.execute("DELETE FROM checkpoint")
    for name, array in state.items():
        stream = BytesIO()
        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
        data = stream.getvalue()
        row = name, samples_done, data, _checksum(name, samples_done, data)
        connection.execute("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", row)
    counts.write(connection, "checkpoint", len(state))


def read(connection: sqlite3.Connection, path: Path) -> tuple[int, State | None]:
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
        if len(rows) != counts.read(connection, path, "checkpoint"):
            raise ValueError("an array is missing")
    except Exception:  # numpy's reader of headers raises whatever Python's own parser does
        raise damaged(path, "the checkpoint of the study") from None
    return samples_done, state or None


def _array(name: str, samples_done: int, data: bytes, checksum: int) -> NDArray[np.generic]:
    typed = isinstance(name, str) and isinstance(samples_done, int)
    if not typed or checksum != _checksum(name, samples_done, data):
        raise ValueError("not as it was written")
    array: NDArray[np.generic] = np.lib.format.read_array(BytesIO(data), allow_pickle=False)
    return array


def _checksum(name: str, samples_done: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(f"{name} {samples_done}".encode()))
