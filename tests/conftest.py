"""Settings of every test: the same examples in every run, no verdict by the clock, one thread, and
workers that start quickly."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import settings

from situate.runtime.processes import launch
from tests import forks

settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")

# Tests compute little: more threads would wait for one another longer than they work.
for library in ("OMP", "MKL", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# A shell that starts tests in the background has them ignore Ctrl-C, and so would all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
