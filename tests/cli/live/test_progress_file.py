"""The file of --progress."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from situate.cli.live.progress_file import (
    MARK,
    ProgressFile,
    ProgressLine,
    SearchEnd,
    SearchHeader,
    begin_progress,
    progress_file,
    read_progress,
)
from situate.errors import ReadError, SituateError
from situate.results.result import Progress
from tests.report.handmade import chain
from tests.report.outcome import outcome


def _search(path: Path, method: str = "heft", end: bool = True) -> None:
    with progress_file(str(path), chain(4), method) as file:
        file.report(Progress(0.5, 3, float("inf"), False, 1.0))
        file.report(Progress(1.5, 9, 5.0, True, 2.0))
        if end:
            file.end(outcome(chain(4), [0, 0, 1, 1]))


# A search comes back line by line.
def test_a_search_has_a_description_its_reports_and_its_end(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    _search(path)
    (lines,) = read_progress(path)
    assert lines[0] == SearchHeader("chain", "pair", "heft", "time", "s")
    assert lines[1] == ProgressLine(0.5, 3, None, False, 1.0, {})
    assert lines[2] == ProgressLine(1.5, 9, 5.0, True, 2.0, {})
    assert isinstance(lines[3], SearchEnd)
    assert (lines[3].value, lines[3].bounded_by) == (5.0, "load")


def test_several_searches_stand_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    _search(path, "single")
    _search(path, "heft")
    assert [lines[0].method for lines in read_progress(path)] == ["single", "heft"]


def test_a_command_begins_its_file_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for _ in range(2):
        begin_progress(str(path))
        _search(path)
    assert len(read_progress(path)) == 1


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    _search(path, end=False)
    path.write_bytes(path.read_bytes()[:-5])
    assert len(read_progress(path)[0]) == 2


def test_without_a_path_nothing_is_written(tmp_path: Path) -> None:
    begin_progress(None)
    with progress_file(None, chain(4), "heft") as file:
        file.report(Progress(0.5, 3, 5.0, True, 1.0))
    assert [*tmp_path.iterdir()] == []


# Failures.
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}\n", "not a file of --progress"),
        (MARK + b"{oops}\n", "line 2"),
        (
            MARK + b'{"type":"progress","seconds":1,"evaluations":1,"value":1,"feasible":true,'
            b'"lower_bound":1,"figures":{}}\n',
            "before any search",
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(ReadError, match=message):
        read_progress(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="No such file"):
        read_progress(tmp_path / "none")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="there is no folder"):
        begin_progress(str(tmp_path / "none" / "run.jsonl"))


class _FullDisk(io.BytesIO):
    """A stream whose disk is full."""

    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_does_not_end_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    file = ProgressFile(_FullDisk(), "run.jsonl")
    for _ in range(2):
        file.report(Progress(0.5, 3, 5.0, True, 1.0))
    notes = capsys.readouterr().err
    assert (
        notes
        == "cannot write 'run.jsonl': No space left on device; the search goes on without it\n"
    )
