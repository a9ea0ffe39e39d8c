"""Errors as one line with a remedy: shortages of memory and threads, and errors in threads."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading

import pytest

from situate.cli.failures import shortage, thread_errors
from situate.data import graph_json
from situate.data.graph import Graph, Op
from situate.errors import SituateError

MEMORY = (
    MemoryError(),
    MemoryError("std::bad_alloc"),
    MemoryError("Unable to allocate 9.00 GiB"),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes."),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 4096 bytes."),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
)
THREADS = (
    RuntimeError("can't start new thread"),
    RuntimeError("Resource temporarily unavailable"),
    BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)),
)
OTHERS = (
    SituateError("op 'out of memory': unknown"),
    RuntimeError("shapes differ"),
    BlockingIOError(errno.EAGAIN, "write could not complete without blocking"),
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
)


# A shortage is told from other errors by its message.
@pytest.mark.parametrize("error", MEMORY, ids=str)
def test_memory_that_runs_out_is_named_with_a_remedy(error):
    message = shortage(error)
    assert message.startswith("memory ran out")
    assert message.endswith("or give a smaller input")


def test_the_allocation_that_failed_is_named():
    assert shortage(MEMORY[2]).startswith("memory ran out (Unable to allocate 9.00 GiB);")
    assert shortage(MEMORY[4]).startswith("memory ran out at a request of 4.00 KiB;")


@pytest.mark.parametrize("error", THREADS, ids=str)
def test_threads_that_run_out_are_named_with_a_remedy(error):
    assert shortage(error).startswith("the system starts no further thread or process: raise its")


@pytest.mark.parametrize("error", OTHERS, ids=str)
def test_other_errors_are_no_shortage(error):
    assert shortage(error) is None


def test_the_error_behind_a_line_of_situate_counts(situate, monkeypatch):
    def fails(*_, **__):
        try:
            raise MEMORY[-1]
        except ImportError:
            raise SituateError("net:model: importing net") from None

    monkeypatch.setattr("situate.cli.app", fails)
    run = situate("methods")
    assert run.status == 2
    assert run.err.startswith("error: net:model: importing net; memory ran out; ")
    assert run.err.count("\n") == 1


LIMITED = """
import resource, sys
import situate._core
from situate.cli import main
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, resource.RLIM_INFINITY))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_command_under_a_limit_of_memory_ends_with_one_line(tmp_path):
    ops = tuple(Op(f"op{i}", seconds={"*": 1.0}, module="m" * 500) for i in range(30_000))
    graph_json.write(Graph(name="large", ops=ops), tmp_path / "large.json")
    command = (sys.executable, "-c", LIMITED, "plan", "large.json", "--cluster", "identical:2")
    run = subprocess.run(
        (*command, "--out", "plan.json"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.startswith("error: memory ran out")
    assert "this process may use" in run.stderr
    assert "raise the limit (ulimit -v)" in run.stderr
    assert run.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["large.json"]


def raising(error: BaseException) -> None:
    def run() -> None:
        raise error

    thread = threading.Thread(target=run, name="writer")
    thread.start()
    thread.join()


# An error in a thread of a library does not stop the command.
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (OSError(errno.ENOSPC, "No space", "a\nb"), r"a\nb: No space"),
        (ValueError("so"), "ValueError: so"),
        (KeyError(), "KeyError"),
    ],
)
def test_an_error_is_one_line(error, message, capsys):
    with thread_errors() as lines:
        raising(error)
    assert capsys.readouterr().err == f"error: writer: {message}\n"
    assert len(lines) == 1


def test_who_ends_a_thread_is_not_reported(capsys):
    with thread_errors() as lines:
        raising(SystemExit())
    assert (lines, capsys.readouterr().err) == ([], "")


@pytest.mark.parametrize(("status", "result"), [(0, 2), (3, 3), (4, 4)])
def test_the_command_does_its_work_and_its_status_says_so(situate, monkeypatch, status, result):
    def command(*_, **__):
        raising(OSError(errno.ENOSPC, "No space left on device"))
        print("the answer")
        return status

    monkeypatch.setattr("situate.cli.app", command)
    run = situate("methods")
    assert (run.status, run.out) == (result, "the answer\n")
    assert run.err == "error: writer: No space left on device\n"
