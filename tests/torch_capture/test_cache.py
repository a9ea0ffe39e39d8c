"""Captured graphs on disk, found again without importing the captured function."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from situate.data.graph import Graph, Op
from situate.torch_capture import cache
from situate.torch_capture.cache import cached, directory, find_note, keep_note
from situate.torch_capture.function import current_directory

KEY = {"function": "mine:step", "optimizer": "sgd"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the cache. Modules of the current directory, beside it, can be imported."""
    monkeypatch.chdir(tmp_path)
    cache_home = tmp_path / "cache"
    cache_home.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))
    with current_directory():
        yield cache_home / "situate"
    forget()


# A graph is captured once per key, whatever happens to its file.
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


# A function's graph is found while all its sources are unchanged.
GRAPH = Graph("mine:step", (Op("a", persistent=1),))

MODULES = ("mine", "mine.inner", "width")


def forget() -> None:
    """No module is loaded any more."""
    for name in MODULES:
        sys.modules.pop(name, None)


def write(file: str, text: str) -> None:
    """Write a module's file; nothing is loaded any more."""
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(text)
    importlib.invalidate_caches()
    forget()


def keep(text: str) -> None:
    """Write `mine.py`, load it, and keep a graph of it."""
    write("mine.py", text)
    loading = cache.Loading()
    loading.keep("mine:step", "sgd", importlib.import_module("mine"), GRAPH)


def find_step() -> Graph | None:
    return cache.find_function_graph("mine:step", "sgd")


def test_nothing_is_found_before_it_is_kept() -> None:
    write("mine.py", "WIDTH = 4")
    assert find_step() is None


def test_it_is_found_without_importing_the_module() -> None:
    keep("WIDTH = 4")
    forget()
    assert find_step() == GRAPH
    assert "mine" not in sys.modules


@pytest.mark.parametrize("name", ["mine", "width"])
def test_it_is_not_found_once_a_file_has_changed(name: str) -> None:
    write("width.py", "WIDTH = 4")
    keep("import width")
    assert find_step() == GRAPH
    write(f"{name}.py", "WIDTH = 5")
    assert find_step() is None


def test_it_is_not_found_once_a_file_has_gone() -> None:
    keep("WIDTH = 4")
    Path("mine.py").unlink()
    assert find_step() is None


def test_it_is_found_again_where_the_files_are_as_they_were() -> None:
    keep("WIDTH = 4")
    write("mine.py", "WIDTH = 5")
    assert find_step() is None
    write("mine.py", "WIDTH = 4")
    assert find_step() == GRAPH


def test_another_optimizer_is_another_graph() -> None:
    keep("WIDTH = 4")
    assert cache.find_function_graph("mine:step", "adam") is None


def test_a_module_that_python_finds_elsewhere_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    keep("WIDTH = 4")
    write("before/mine.py", "WIDTH = 5")
    monkeypatch.syspath_prepend(Path("before").absolute())
    assert find_step() is None


def test_a_package_that_hides_a_module_is_another() -> None:
    keep("WIDTH = 4")
    write("mine/__init__.py", "WIDTH = 5")
    assert find_step() is None


def test_a_module_inside_a_package_is_found() -> None:
    write("mine/__init__.py", "")
    write("mine/inner.py", "WIDTH = 4")
    loading = cache.Loading()
    loading.keep("mine.inner:step", "sgd", importlib.import_module("mine.inner"), GRAPH)
    assert cache.find_function_graph("mine.inner:step", "sgd") == GRAPH


def test_it_is_not_kept_if_a_file_was_written_since_it_was_loaded() -> None:
    write("mine.py", "WIDTH = 4")
    loading = cache.Loading()
    module = importlib.import_module("mine")
    later = time.time() + 10
    os.utime("mine.py", (later, later))
    loading.keep("mine:step", "sgd", module, GRAPH)
    assert find_step() is None


def test_one_that_was_loaded_before_must_be_older_than_the_process() -> None:
    write("mine.py", "WIDTH = 4")
    module = importlib.import_module("mine")
    cache.Loading().keep("mine:step", "sgd", module, GRAPH)
    assert find_step() is None
    os.utime("mine.py", (1e9, 1e9))
    cache.Loading().keep("mine:step", "sgd", module, GRAPH)
    assert find_step() == GRAPH


def test_the_process_is_older_than_its_first_import(folder: Path) -> None:
    """A module that is written between the import of itself and that of situate is stale."""
    program = """
import os, sys, time
open("mine.py", "w").write("WIDTH = 4")
os.utime("mine.py", (1e9, 1e9))
sys.path.insert(0, "")
import mine
time.sleep(0.05)
open("mine.py", "w").write("WIDTH = 8")
from situate.data.graph import Graph, Op
from situate.torch_capture import cache
cache.Loading().keep("mine:step", "sgd", mine, Graph("mine:step", (Op("a", persistent=1),)))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert find_step() is None


def test_where_the_start_is_unknown_what_was_loaded_before_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write("mine.py", "WIDTH = 4")
    os.utime("mine.py", (1e9, 1e9))
    module = importlib.import_module("mine")
    monkeypatch.setattr(cache, "PROCESS_START", None)
    cache.Loading().keep("mine:step", "sgd", module, GRAPH)
    assert find_step() is None


def test_a_file_that_cannot_be_read_is_no_error() -> None:
    write("mine.py", "WIDTH = 4")
    loading = cache.Loading()
    module = importlib.import_module("mine")
    Path("mine.py").unlink()
    Path("mine.py").mkdir()
    loading.keep("mine:step", "sgd", module, GRAPH)
    assert find_step() is None


def test_a_damaged_note_is_as_none(folder: Path) -> None:
    keep("WIDTH = 4")
    (note,) = folder.glob("*.note.json")
    note.write_text('["mine.py"')
    assert find_step() is None
