"""A study is opened where a file can be, by one process at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from situate.errors import ReadError, SituateError
from situate.study.file import StudyFile
from tests.study.studies import (
    BATCH,
    HEADER,
    batch,
    content,
    fill,
    make_study,
    record,
    refused,
    room_for,
)

ROOT = Path(__file__).parents[2]


# Paths: odd names, files that are no study, places without permission.
@pytest.mark.parametrize("name", ["a", "a b?c#d%20", ":memory:", "é\n", "-x"])
def test_any_name_will_do(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_study(Path(name))
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("size", [1, 15, 16, 99, 100, 511, 512, 1000, 1024, 4096, 9999])
@pytest.mark.parametrize("mark", [b"", b"SQLite format 3\0"], ids=["text", "junk"])
def test_a_file_of_another_kind_is_refused(mark: bytes, size: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes((mark + b"{}\n" * size)[:size])
    refused("not a study; give another file|damaged", tmp_path / "a", ReadError)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("missing/a", "there is no folder '.*missing'"),
        (".", "is a folder"),
        ("fifo", "is not a regular file"),
        ("file/a", "Not a directory"),
        ("nul\x00", "null byte"),
        ("n" * 300, "File name too long"),
    ],
)
def test_a_place_where_no_file_can_be_is_refused(name: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    refused(match, tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "file"]


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A folder that a user without rights can look into; the test becomes that user."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        make_study(Path(name) / "a.study").chmod(0o644)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        else:
            os.chmod(name, 0o555)
            (Path(name) / "a.study").chmod(0o444)
        yield Path(name)
        if root:
            os.seteuid(0)
        os.chmod(name, 0o755)


def test_a_read_only_study_is_refused(guarded: Path) -> None:
    refused("cannot be written; make the file and its folder writable", guarded / "a.study")


def test_a_read_only_folder_is_refused(guarded: Path) -> None:
    refused("cannot be opened; check that the file and its folder", guarded / "new.study")


# Full disks and other processes.
def test_a_full_disk_keeps_what_was_recorded_before(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with StudyFile(path, HEADER) as study, room_for(60_000):
        with pytest.raises(SituateError, match=r"cannot be written .*; make room and start again"):
            fill(study, 10**5)
        assert len(study.stored_samples(0, batch(0)[0])[0]) == BATCH
    with StudyFile(path, HEADER) as study:
        firsts = [first for first, _, _ in study.batches(10**6)]
        assert firsts == list(range(0, len(firsts) * BATCH, BATCH))
        record(study, len(firsts) * BATCH)


HOLD = """
import sys
from pathlib import Path
from situate.study.file import StudyFile
from tests.study.studies import HEADER, fill
study = StudyFile(Path(sys.argv[1]), HEADER)
fill(study)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9")
def test_a_study_in_use_is_refused_until_its_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        refused("the study is in use by another process; wait", path)
        holder.kill()
    with StudyFile(path, HEADER) as study, StudyFile(tmp_path / "b", HEADER) as other:
        fill(other)
        assert content(study) == content(other)


def test_two_searches_of_one_process_cannot_share_a_study(tmp_path: Path) -> None:
    with StudyFile(tmp_path / "a", HEADER) as study:
        refused("in use", tmp_path / "a")
        record(study, 0)
