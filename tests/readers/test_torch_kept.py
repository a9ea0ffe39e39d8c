"""Graphs of users' functions, found again without importing them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from situate.graph import Graph, Op
from situate.readers import torch_kept
from situate.readers.torch_function import current_directory

GRAPH = Graph("mine:step", (Op("a", persistent=1),))

Write = Callable[[str, str], ModuleType]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module into the current directory, and imports it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def imported(name: str, text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    with current_directory():
        yield imported
        for name in ("mine", "width"):
            sys.modules.pop(name, None)


def kept() -> Graph | None:
    return torch_kept.find("mine:step", "sgd")


def test_nothing_is_found_before_it_is_kept(write: Write) -> None:
    write("mine", "WIDTH = 4")
    assert kept() is None


def test_it_is_found_without_importing_the_module(write: Write) -> None:
    torch_kept.keep("mine:step", "sgd", write("mine", "WIDTH = 4"), GRAPH)
    del sys.modules["mine"]
    assert kept() == GRAPH
    assert "mine" not in sys.modules


@pytest.mark.parametrize("name", ["mine", "width"])
def test_it_is_not_found_once_a_file_has_changed(write: Write, name: str) -> None:
    write("width", "WIDTH = 4")
    torch_kept.keep("mine:step", "sgd", write("mine", "import width"), GRAPH)
    assert kept() == GRAPH
    Path(f"{name}.py").write_text("WIDTH = 5")
    assert kept() is None


def test_it_is_not_found_once_a_file_has_gone(write: Write) -> None:
    torch_kept.keep("mine:step", "sgd", write("mine", "WIDTH = 4"), GRAPH)
    Path("mine.py").unlink()
    assert kept() is None


def test_it_is_found_again_where_the_files_are_as_they_were(write: Write) -> None:
    torch_kept.keep("mine:step", "sgd", write("mine", "WIDTH = 4"), GRAPH)
    write("mine", "WIDTH = 5")
    assert kept() is None
    write("mine", "WIDTH = 4")
    assert kept() == GRAPH


def test_another_optimizer_is_another_graph(write: Write) -> None:
    torch_kept.keep("mine:step", "sgd", write("mine", "WIDTH = 4"), GRAPH)
    assert torch_kept.find("mine:step", "adam") is None


def test_a_module_that_python_finds_elsewhere_is_another(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_kept.keep("mine:step", "sgd", write("mine", "WIDTH = 4"), GRAPH)
    del sys.modules["mine"]
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "mine.py").write_text("WIDTH = 5")
    monkeypatch.syspath_prepend(tmp_path / "before")
    assert kept() is None


def test_a_damaged_list_of_files_is_as_none(write: Write, tmp_path: Path) -> None:
    torch_kept.keep("mine:step", "sgd", write("mine", "WIDTH = 4"), GRAPH)
    (listed,) = tmp_path.glob("cache/situate/*.files.json")
    listed.write_text('["mine.py"')
    assert kept() is None
