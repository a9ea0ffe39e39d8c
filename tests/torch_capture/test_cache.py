"""Captured graphs on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from situate.data.graph import Graph, Op
from situate.torch_capture.cache import cached, directory, find_note, keep_note

KEY = {"function": "mine:step", "optimizer": "sgd"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "situate"


class Capture:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Graph:
        self.count += 1
        return Graph("g", (Op("a", persistent=self.count),), warnings=("an old torch",))


def test_the_second_time_nothing_is_captured():
    capture = Capture()
    first, second = cached(KEY, capture), cached(KEY, capture)
    assert (capture.count, first) == (1, second)
    assert second.warnings == ("an old torch",)


def test_another_key_is_another_graph():
    capture = Capture()
    assert cached(KEY, capture) != cached({**KEY, "optimizer": "adam"}, capture)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b broken", b'{"format": "situate-graph"}'])
def test_a_damaged_file_is_captured_anew(folder: Path, content: bytes):
    capture = Capture()
    cached(KEY, capture)
    (file,) = folder.iterdir()
    file.write_bytes(content)
    assert cached(KEY, capture).ops[0].persistent == 2
    assert cached(KEY, capture).ops[0].persistent == 2


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b broken", b"{", b'["\xc0"]', b"[" * 100_000])
def test_a_damaged_note_is_none(folder: Path, content: bytes):
    keep_note(KEY, ["a"])
    assert find_note(KEY, list[str]) == ["a"]
    (file,) = folder.iterdir()
    file.write_bytes(content)
    assert find_note(KEY, list[str]) is None


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path):
    folder.write_text("a file, where the folder should be")
    assert cached(KEY, Capture()).ops[0].persistent == 1


def test_nothing_but_the_graph_is_left_in_the_folder(folder: Path):
    cached(KEY, Capture())
    assert [file.suffixes for file in folder.iterdir()] == [[".json", ".gz"]]


def test_without_xdg_it_lies_under_the_home_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert directory() == Path("/home/someone/.cache/situate")


def test_a_key_may_hold_a_path_that_is_no_utf8():
    capture = Capture()
    key = {**KEY, "folder": os.fsdecode(b"/home/\xff")}
    assert cached(key, capture) == cached(key, capture)
    assert capture.count == 1


def test_a_note_that_json_cannot_hold_is_not_kept():
    keep_note(KEY, [os.fsdecode(b"/home/\xff")])
    assert find_note(KEY, list[str]) is None


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch):
    def homeless(_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", classmethod(homeless))
    capture = Capture()
    assert cached(KEY, capture) != cached(KEY, capture)
    keep_note(KEY, ["a"])
    assert find_note(KEY, list[str]) is None
