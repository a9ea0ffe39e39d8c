"""Graphs of users' functions, found again without importing them."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from situate.data.graph import Graph, Op
from situate.torch_capture import capture_cache as kept
from situate.torch_capture.function import current_directory

GRAPH = Graph("mine:step", (Op("a", persistent=1),))

MODULES = ("mine", "mine.inner", "width")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, whose modules are found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with current_directory():
        yield tmp_path
    forget()


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
    loading = kept.Loading()
    loading.keep("mine:step", "sgd", importlib.import_module("mine"), GRAPH)


def found() -> Graph | None:
    return kept.find("mine:step", "sgd")


def test_nothing_is_found_before_it_is_kept() -> None:
    write("mine.py", "WIDTH = 4")
    assert found() is None


def test_it_is_found_without_importing_the_module() -> None:
    keep("WIDTH = 4")
    forget()
    assert found() == GRAPH
    assert "mine" not in sys.modules


@pytest.mark.parametrize("name", ["mine", "width"])
def test_it_is_not_found_once_a_file_has_changed(name: str) -> None:
    write("width.py", "WIDTH = 4")
    keep("import width")
    assert found() == GRAPH
    write(f"{name}.py", "WIDTH = 5")
    assert found() is None


def test_it_is_not_found_once_a_file_has_gone() -> None:
    keep("WIDTH = 4")
    Path("mine.py").unlink()
    assert found() is None


def test_it_is_found_again_where_the_files_are_as_they_were() -> None:
    keep("WIDTH = 4")
    write("mine.py", "WIDTH = 5")
    assert found() is None
    write("mine.py", "WIDTH = 4")
    assert found() == GRAPH


def test_another_optimizer_is_another_graph() -> None:
    keep("WIDTH = 4")
    assert kept.find("mine:step", "adam") is None


def test_a_module_that_python_finds_elsewhere_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    keep("WIDTH = 4")
    write("before/mine.py", "WIDTH = 5")
    monkeypatch.syspath_prepend(Path("before").absolute())
    assert found() is None


def test_a_package_that_hides_a_module_is_another() -> None:
    keep("WIDTH = 4")
    write("mine/__init__.py", "WIDTH = 5")
    assert found() is None


def test_a_module_inside_a_package_is_found() -> None:
    write("mine/__init__.py", "")
    write("mine/inner.py", "WIDTH = 4")
    loading = kept.Loading()
    loading.keep("mine.inner:step", "sgd", importlib.import_module("mine.inner"), GRAPH)
    assert kept.find("mine.inner:step", "sgd") == GRAPH


def test_it_is_not_kept_if_a_file_was_written_since_it_was_loaded() -> None:
    write("mine.py", "WIDTH = 4")
    loading = kept.Loading()
    module = importlib.import_module("mine")
    later = time.time() + 10
    os.utime("mine.py", (later, later))
    loading.keep("mine:step", "sgd", module, GRAPH)
    assert found() is None


def test_one_that_was_loaded_before_must_be_older_than_the_process() -> None:
    write("mine.py", "WIDTH = 4")
    module = importlib.import_module("mine")
    kept.Loading().keep("mine:step", "sgd", module, GRAPH)
    assert found() is None
    os.utime("mine.py", (1e9, 1e9))
    kept.Loading().keep("mine:step", "sgd", module, GRAPH)
    assert found() == GRAPH


def test_a_file_that_cannot_be_read_is_no_error() -> None:
    write("mine.py", "WIDTH = 4")
    loading = kept.Loading()
    module = importlib.import_module("mine")
    Path("mine.py").unlink()
    Path("mine.py").mkdir()
    loading.keep("mine:step", "sgd", module, GRAPH)
    assert found() is None


def test_a_damaged_note_is_as_none(folder: Path) -> None:
    keep("WIDTH = 4")
    (note,) = folder.glob("cache/situate/*.note.json")
    note.write_text('["mine.py"')
    assert found() is None
