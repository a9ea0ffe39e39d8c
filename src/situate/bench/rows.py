"""Rows of measurements in a file of JSON lines; each is written at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from situate.bench.provenance import Provenance
from situate.errors import ReadError, SituateError
from situate.files.atomic import write_failure
from situate.files.strict_json import decode

Key = tuple[str, str, float, int, int, str]


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run of a method on an instance.

    Attributes:
        family, instance: the name of the problem.
        problem: its hash, see `situate.bench.instances.problem_hash`.
        method: a method of situate or a peer.
        time_limit: seconds that it was given.
        value: of its plan; None where it has none, or where the plan's value is infinite.
        feasible: whether the plan fits.
        lower_bound: no plan that fits has a smaller value; None beside a plan that does not fit.
        bounded_by: the bound's name.
        seconds: wall time that it took.
        history: (seconds, value) at each improvement.
        refused: the reason that the method has no plan; empty if it has one.
    """

    family: str
    instance: str
    problem: str
    ops: int
    devices: int
    objective: str
    method: str
    time_limit: float
    seed: int
    threads: int
    value: float | None
    feasible: bool
    lower_bound: float | None
    bounded_by: str | None
    evaluations: int
    seconds: float
    history: list[tuple[float, float]]
    refused: str
    date: str
    made_by: Provenance

    @property
    def key(self) -> Key:
        """Two rows of one key are the same measurement."""
        program = self.made_by.program
        return (self.problem, self.method, self.time_limit, self.seed, self.threads, program)


class RowFile:
    """A file of rows, one per line; without a path, rows stay in memory.

    An incomplete last row, which a killed process leaves, is cut off.

    Raises:
        ReadError: the file holds something else; names the line.
        SituateError: it cannot be written.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        self.rows: list[Row] = []
        if self._path is not None:
            self.rows += _read(self._path)

    def add(self, row: Row) -> None:
        """Add a row, and write it to the disk at once.

        Raises:
            SituateError: the file cannot be written.
        """
        if self._path is not None:
            _append(self._path, msgspec.json.encode(row) + b"\n")
        self.rows.append(row)


def _read(path: Path) -> list[Row]:
    """The rows of a file, which is created if it is missing."""
    if path.exists() and not path.is_file():
        raise SituateError(f"cannot write {str(path)!r}: rows are read again, so it must be a file")
    try:
        # Opened to append, so that a file that cannot be written fails before hours of runs.
        with path.open("a+b") as file:
            file.seek(0)
            data = file.read()
            whole = data.rfind(b"\n") + 1
            rows = list(_rows(path, data[:whole] if _begins(data[whole:]) else data))
            if whole < len(data):
                file.truncate(whole)
    except OSError as error:
        raise _unwritable(path, error) from None
    return rows


def _begins(line: bytes) -> bool:
    """True for the beginning of a row, however short."""
    first = b'{"family":'
    return line[: len(first)] == first[: len(line)]


def _rows(path: Path, data: bytes) -> Iterator[Row]:
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            yield decode(line, Row)
        except ReadError as error:
            raise ReadError(
                f"{path}, line {number}: not a row of 'situate bench': {error}"
            ) from None


def _append(path: Path, line: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> SituateError:
    return SituateError(f"cannot write {str(path)!r}: {write_failure(path, error)}")
