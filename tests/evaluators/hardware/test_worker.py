"""The worker of a device runs one placement after the other, until its parent hangs up."""

from __future__ import annotations

import gc
import multiprocessing
import os
from pathlib import Path

import pytest

from situate.evaluators.hardware import worker


@pytest.fixture(autouse=True)
def score(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that stands for that of Linux; this process is not set up as a worker."""
    found = tmp_path / "oom_score_adj"
    monkeypatch.setattr(worker, "Path", lambda name: tmp_path / Path(name).name)
    monkeypatch.setattr(worker, "set_up", lambda: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    return found


def test_it_serves_until_its_parent_hangs_up(monkeypatch: pytest.MonkeyPatch, score: Path) -> None:
    served: list[int] = []

    def serve(parent: object) -> None:
        served.append(len(served))
        if len(served) == 3:
            raise EOFError

    monkeypatch.setattr(worker, "serve", serve)
    worker.main(_connection())
    assert served == [0, 1, 2]
    assert score.read_text() == "1000"


def test_it_imports_what_may_define_operators_where_that_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported: list[str] = []

    def found(name: str) -> None:
        imported.append(name)
        if name == "absent":
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(worker, "import_module", found)
    worker.main(_connection(), "absent", "present")
    assert imported == ["absent", "present"]


def _connection() -> int:
    """The descriptor of a connection whose other end is closed."""
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    return os.dup(theirs.fileno())
