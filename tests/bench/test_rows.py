"""Files of rows."""

from __future__ import annotations

import pytest

from situate.bench.best_known import BestKnown
from situate.bench.rows import RowFile
from situate.bench.run import Bench
from situate.errors import ReadError, SituateError
from tests.bench.small import runs


@pytest.fixture
def path(tmp_path):
    """A file of three rows."""
    path = tmp_path / "rows.jsonl"
    list(Bench(runs(seeds=3), RowFile(path), BestKnown()).run())
    return path


def test_rows_are_read_as_they_were_written(path):
    bench = Bench(runs(seeds=3), RowFile(), BestKnown())
    list(bench.run())
    assert [row.key for row in RowFile(path).rows] == [row.key for row in bench.rows.rows]
    assert RowFile(path).rows == RowFile(path).rows


@pytest.mark.parametrize("residuals", [1, 9, 10, 300])
def test_a_row_that_was_not_finished_is_cut_off(path, residuals):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:residuals])
    file = RowFile(path)
    assert len(file.rows) == 1
    file.add(file.rows[0])
    assert path.read_bytes() == lines[0] * 2


@pytest.mark.parametrize("text", ["of mine", "of mine\n", '{"ops": 3}\n', "[1]\n"])
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(ReadError, match=r"notes.txt, line 1: not a row of 'situate bench'"):
        RowFile(path)
    assert path.read_text() == text


def test_a_damaged_line_is_named(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:50] + b"\n" + lines[2])
    with pytest.raises(ReadError, match="line 2"):
        RowFile(path)


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(SituateError, match="there is no folder"):
        RowFile(tmp_path / "none" / "rows.jsonl")


def test_a_file_that_is_not_there_is_made(tmp_path):
    assert RowFile(tmp_path / "rows.jsonl").rows == []
