"""Forked workers are like the interpreters that they stand in for."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from situate.runtime.processes import launch
from situate.runtime.processes.launch import launch_process
from tests.forks import AVAILABLE, ForkedProcess, Starter

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no process can adopt orphans")

REPORT = """
import json, os, sys, torch
# import main; main(
with open(int(sys.argv[1]), "w") as answer:
    json.dump(
        {
            "arguments": sys.argv[2:],
            "name": __name__,
            "path": sys.path,
            "device": os.environ["SITUATE_DEVICE"],
            "folder": os.getcwd(),
            "threads": torch.get_num_threads(),
            "session": os.getsid(0) == os.getpid(),
            "parent": os.getppid(),
        },
        answer,
    )
"""
"""The comment makes it the program of a worker."""


def report(threads: int | None) -> tuple[Any, Any]:
    """The process of a worker, and the contents of its report."""
    reader, writer = os.pipe()
    process = launch_process(REPORT, (str(writer), "a b"), (writer,), threads=threads, name="gpu:1")
    os.close(writer)
    with os.fdopen(reader) as answer:
        return process, json.load(answer)


# What a worker can see of its start.
def test_a_fork_sees_what_an_interpreter_sees(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    threads = 2
    fork, seen = report(threads)
    assert isinstance(fork, ForkedProcess)
    request.getfixturevalue("interpreters")
    process, expected = report(threads)
    assert not isinstance(process, ForkedProcess)
    assert (fork.wait(), process.wait()) == (0, 0)
    # A fork has the folders of its server as well, behind its own.
    assert seen["path"][: len(expected["path"])] == expected["path"]
    assert seen | {"path": None} == expected | {"path": None}
    assert (seen["parent"], seen["threads"]) == (os.getpid(), threads)


# How it ends.
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(7)", 7),
        ("raise SystemExit('no')", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os; os._exit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
    ],
)
def test_a_fork_ends_as_an_interpreter_does(
    processes_of_tests: Starter, code: str, status: int
) -> None:
    assert processes_of_tests.run(code) == status


def test_a_fork_is_killed_with_its_session() -> None:
    code = "import time; time.sleep(600)  # import main; main("
    process = launch_process(code, (), (), threads=1, name="a")
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert isinstance(launch.subprocess, Starter)
