"""The file of `--progress`: a line of JSON for each report of a running search.

The first line is a mark, the next one describes a search; after its reports a line with its result
ends it. A command that searches several times, as `compare` does, writes them one after another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

import msgspec

from situate.cli.terminal import note
from situate.data.problem import Problem
from situate.errors import ReadError, SituateError
from situate.files.atomic import write_failure
from situate.results.result import Progress, Result

MARK = b'{"format":"situate-progress","version":1}\n'
"""The first line of a file."""


class SearchHeader(msgspec.Struct, frozen=True, tag="search"):
    """The search that the next lines are about."""

    graph: str
    cluster: str
    method: str
    objective: str
    unit: str


class ProgressLine(msgspec.Struct, frozen=True, tag="progress"):
    """The state of a search, as in `Progress`; value None before the first plan."""

    seconds: float
    evaluations: int
    value: float | None
    feasible: bool
    lower_bound: float
    figures: dict[str, float]
    """Of workers and controllers, if the search has any."""


class SearchEnd(msgspec.Struct, frozen=True, tag="end"):
    """The result of a search; lower_bound None where nothing fits."""

    seconds: float
    evaluations: int
    value: float | None
    feasible: bool
    lower_bound: float | None
    bounded_by: str | None


Line = SearchHeader | ProgressLine | SearchEnd


class ProgressFile:
    """Appends the reports of one search to a stream; None is none.

    If a write fails, as on a full disk, the search goes on without the file.
    """

    def __init__(self, stream: IO[bytes] | None, path: str | None = None) -> None:
        self._stream, self._path = stream, path

    def begin(self, problem: Problem, method: str) -> None:
        """Append the description of a search."""
        graph, cluster = problem.graph, problem.cluster
        self._write(SearchHeader(graph.name, cluster.name, method, problem.objective, graph.unit))

    def report(self, progress: Progress) -> None:
        """Append the state of the search."""
        self._write(
            ProgressLine(
                progress.seconds,
                progress.evaluations,
                _finite(progress.value),
                progress.feasible,
                progress.lower_bound,
                progress.figures,
            )
        )

    def end(self, result: Result) -> None:
        """Append the result."""
        self._write(
            SearchEnd(
                result.seconds,
                result.evaluations,
                _finite(result.value),
                result.feasible,
                result.lower_bound,
                result.bounded_by,
            )
        )

    def _write(self, line: Line) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            self._stream = None
            note(f"cannot write {self._path!r}: {error.strerror}; the search goes on without it")


@contextmanager
def progress_file(path: str | None, problem: Problem, method: str) -> Iterator[ProgressFile]:
    """The file of a search, which begins with its description; without a path it writes nothing.

    Raises:
        SituateError: the file cannot be opened.
    """
    if path is None:
        yield ProgressFile(None)
        return
    with _opened(path, "ab") as stream:
        file = ProgressFile(stream, path)
        file.begin(problem, method)
        yield file


def begin_progress(path: str | None) -> None:
    """Make the file anew, before the first search of a command.

    Raises:
        SituateError: it cannot be written.
    """
    if path is not None:
        with _opened(path, "wb") as stream:
            stream.write(MARK)


def _opened(path: str, mode: Literal["ab", "wb"]) -> IO[bytes]:
    try:
        return open(path, mode, buffering=0)
    except OSError as error:
        raise SituateError(f"cannot write {path!r}: {write_failure(path, error)}") from None


def read_progress(path: str | Path) -> list[list[Line]]:
    """The lines of each search. A last line that is still being written is left out.

    Raises:
        ReadError: the file cannot be read, or a line is damaged.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror or error}") from None
    if not content.startswith(MARK):
        raise ReadError(f"{path}: not a file of --progress")
    searches: list[list[Line]] = []
    whole = content[len(MARK) : content.rfind(b"\n") + 1]
    for number, text in enumerate(whole.splitlines(), start=2):
        try:
            line = msgspec.json.decode(text, type=Line)
        except msgspec.DecodeError as error:
            raise ReadError(f"{path}: line {number}: {error}") from None
        if isinstance(line, SearchHeader):
            searches.append([])
        if not searches:
            raise ReadError(f"{path}: line {number}: comes before any search")
        searches[-1].append(line)
    return searches


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
