from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from situate.errors import SituateError
from situate.files.atomic import write_bytes, write_failure


# Permissions and links survive a replacement.
def test_a_file_is_written(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"content")
    assert (tmp_path / "a").read_bytes() == b"content"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    target.chmod(0o640)
    write_bytes(str(target), b"new")
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_bytes(tmp_path / "a", b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_the_mask_of_the_process_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of all threads: files they make meanwhile would be anybody's to write."""
    masks: list[int] = []
    monkeypatch.setattr(os, "umask", lambda mask: masks.append(mask) or 0o022)
    write_bytes(tmp_path / "a", b"")
    assert masks == []


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_nobody_reads_what_replaces_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    target = tmp_path / "a"
    target.touch()
    target.chmod(mode)
    visited: list[int] = []
    replace = os.replace

    def replaced(source: Path, target: Path) -> None:
        visited.append(os.stat(source).st_mode & 0o777)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replaced)
    write_bytes(target, b"new")
    assert visited == [mode]


def test_a_link_keeps_pointing_at_what_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


# Errors are one line with a remedy.
@pytest.mark.parametrize("name", ["missing/a", ".", "file/a", "nul\x00", "n" * 300])
def test_what_cannot_be_written_is_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SituateError, match=r"^cannot write '.*': .+$") as caught:
        write_bytes(os.path.join(tmp_path, name), b"data")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="no file system that takes no files")
def test_a_folder_that_is_there_is_not_to_be_made() -> None:
    with pytest.raises(SituateError, match=r"cannot write '/proc/x.json': (?!there is no folder)"):
        write_bytes("/proc/x.json", b"data")


def test_a_name_may_be_as_long_as_the_system_takes_them(tmp_path: Path) -> None:
    name = "\N{SNOWMAN}" * 83 + ".plan"
    write_bytes(tmp_path / name, b"content")
    assert os.listdir(tmp_path) == [name]


def test_where_there_is_no_folder_the_line_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match=r"there is no folder '.*missing': make it first"):
        write_bytes(tmp_path / "missing" / "a", b"data")


# Failures leave the old file; pipes are written to.
def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(SituateError, match="No space left on device"):
        write_bytes(tmp_path / "a", b"new")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"through")
    reader.join(timeout=10)
    assert received == [b"through"]
    assert pipe.is_fifo()


def test_a_pipe_without_a_name_is_written_to() -> None:
    """As `>(command)` of a shell makes one, and /dev/stdout before a `|`."""
    read, write = os.pipe()
    write_bytes(f"/dev/fd/{write}", b"through")
    os.close(write)
    with open(read, "rb") as stream:
        assert stream.read() == b"through"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_name_beyond_ascii_is_written_whatever_the_locale(tmp_path: Path, locale: str) -> None:
    code = (
        "import os; from situate.files.atomic import write_bytes; "
        "write_bytes(os.listdir()[0], b'new')"
    )
    (tmp_path / "löwe.json").touch()
    plain = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, **plain}, check=True
    )
    assert (tmp_path / "löwe.json").read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_place_that_is_read_only_has_a_remedy(tmp_path: Path, number: int) -> None:
    reason = write_failure(tmp_path / "plan.json", OSError(number, os.strerror(number)))
    assert reason == (
        f"{os.strerror(number)}: make it and its folder writable, or give another path"
    )
