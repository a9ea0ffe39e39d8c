"""Settings of every test: the same examples in every run, no verdict by the clock, one thread, and
workers that start quickly."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from situate.runtime.processes import launch
from tests import forks

settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")

# Objects that tests make before Python looks for garbage. With its default of 700, that search is a
# fifth of the time of collection, and an eighth of that of tests that trace PyTorch.
gc.set_threshold(300_000)

# Tests compute little: more threads would wait for one another longer than they work.
for library in ("OMP", "MKL", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Graphs that a user captured before would hide faults of capture. All processes of a run share one
# empty cache. Matplotlib's own, which takes seconds to fill, stays.
if "PYTEST_XDIST_WORKER" not in os.environ:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ.setdefault("MPLCONFIGDIR", str(cache / "matplotlib"))
    CACHE = tempfile.TemporaryDirectory(prefix="situate-tests-")
    os.environ["XDG_CACHE_HOME"] = CACHE.name

# A shell that starts tests in the background has them ignore Ctrl-C, and so would all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


LONG = ("torch_capture", "writers", "test_corpus.py", "test_tutorial.py")
"""Folders and files with the longest files of tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files begin first: at the end one of them would run while other processes wait."""
    items.sort(key=lambda item: not any(name in item.path.parts for name in LONG))


def pytest_collection_finish() -> None:
    """Modules and tests stay: looking for garbage among them is in vain."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def processes_of_tests() -> Iterator[forks.Starter]:
    """Starts the workers of all tests, and processes for their own code."""
    starter = forks.Starter()
    with pytest.MonkeyPatch.context() as patch:
        if forks.AVAILABLE:
            patch.setattr(launch, "subprocess", starter)
        yield starter
    starter.close()


@pytest.fixture
def interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of a test are fresh interpreters, as outside the tests."""
    monkeypatch.setattr(launch, "subprocess", subprocess)
