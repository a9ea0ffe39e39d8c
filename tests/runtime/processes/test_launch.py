"""The start and the end of child processes."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
import threading

import pytest

from situate.runtime.processes.launch import POLL_SECONDS, ChildProcesses, launch_process
from tests.processes import gone, interrupt_starts, left_of


def line(code: str, threads: int | None = None) -> str:
    reading, writing = os.pipe()
    text = f"import os, sys; os.write(int(sys.argv[1]), str({code}).encode())"
    process = launch_process(text, (str(writing),), (writing,), threads=threads, name="cpu:1")
    os.close(writing)
    with os.fdopen(reading) as pipe:
        output = pipe.read()
    assert process.wait() == 0
    return output


# The environment of a child.
def test_it_finds_what_this_process_finds(monkeypatch, tmp_path) -> None:
    (tmp_path / "only_here.py").write_text("NAME = 'found'\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert line("__import__('only_here').NAME") == "found"


@pytest.mark.parametrize(("path", "output"), [([], False), ([""], True)])
def test_it_looks_through_the_current_directory_where_this_process_does(
    monkeypatch, tmp_path, path, output
) -> None:
    (tmp_path / "lying_here.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", path + [entry for entry in sys.path if entry])
    code = "__import__('importlib.util').util.find_spec('lying_here') is not None"
    assert line(code) == str(output)


def test_it_looks_for_modules_in_the_same_order(monkeypatch, tmp_path) -> None:
    paths = [str(tmp_path), *dict.fromkeys(entry for entry in sys.path if entry)]
    monkeypatch.setattr(sys, "path", paths)
    assert ast.literal_eval(line("sys.path"))[: len(paths)] == paths


def test_it_knows_its_device_and_its_threads() -> None:
    assert line("os.environ['SITUATE_DEVICE']") == "cpu:1"
    assert line("os.environ['OMP_NUM_THREADS']", threads=3) == "3"


def test_it_has_a_session_of_its_own() -> None:
    assert line("os.getsid(0) == os.getpid()") == "True"


SLEEP = "import time; time.sleep(600)"


def start(launch_child: ChildProcesses) -> int:
    return launch_child.start(SLEEP, (), (), threads=1, name="cpu:0").pid


# The ends of children.
@pytest.mark.parametrize("times", [1, 3])
def test_one_that_starts_when_ctrl_c_comes_is_known(monkeypatch, times) -> None:
    launch_child, numbers = ChildProcesses(), interrupt_starts(monkeypatch, times)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            start(launch_child)
    assert len(numbers) == 2
    with pytest.raises(KeyboardInterrupt):
        launch_child.end()
    assert all(map(gone, numbers))


def test_unreachable_processes_end(monkeypatch) -> None:
    launch_child = ChildProcesses()
    number = start(launch_child)
    del launch_child
    gc.collect()
    assert gone(number)


def test_one_ends_with_all_that_it_started(tmp_path) -> None:
    reading, writing = os.pipe()
    code = "import os, subprocess, sys; child = subprocess.Popen(['sleep', '600']); "
    code += f"os.write(int(sys.argv[1]), str(child.pid).encode() + b'\\n'); {SLEEP}"
    launch_child = ChildProcesses()
    launch_child.start(code, (str(writing),), (writing,), threads=1, name="cpu:0")
    os.close(writing)
    with os.fdopen(reading) as pipe:
        child = int(pipe.readline())
    launch_child.end()
    assert left_of([child]) == []


WORKER = f"""
import os, sys, time
os.write(int(sys.argv[1]), b"ready")
time.sleep({3 * POLL_SECONDS})
os.write(int(sys.argv[1]), b"alive")
"""

BUSY = """
import os
print(os.getpid(), flush=True)
while True: pass
"""

PARENT = f"""
import time
from situate.runtime.processes.launch import launch_process
launch_process({BUSY!r}, (), (), threads=1, name="cpu:0")
time.sleep(600)
"""


# Children watch their parent.
def test_it_outlives_the_thread_that_started_it() -> None:
    reading, writing = os.pipe()
    line = []

    def start() -> None:
        line.append(launch_process(WORKER, (str(writing),), (writing,), threads=1, name="cpu:0"))
        os.close(writing)
        line.append(os.read(reading, 5))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    process, ready = line
    with os.fdopen(reading, "rb") as pipe:
        assert (ready, pipe.read()) == (b"ready", b"alive")
    assert process.wait() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_ends_with_a_parent_that_is_killed_whatever_it_does() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    assert left_of([worker]) == []


def test_one_that_starts_when_its_parent_is_gone_does_nothing(monkeypatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    process = launch_process("print('hello')", (), (), threads=1, name="cpu:0")
    assert process.wait() == 1
