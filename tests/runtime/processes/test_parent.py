"""A worker lives as long as the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from situate.runtime.processes.launch import launch_process
from situate.runtime.processes.parent import POLL_SECONDS
from tests.processes import left_of

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


def test_it_outlives_the_thread_that_started_it() -> None:
    reading, writing = os.pipe()
    said = []

    def start() -> None:
        said.append(launch_process(WORKER, (str(writing),), (writing,), threads=1, name="cpu:0"))
        os.close(writing)
        said.append(os.read(reading, 5))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    process, ready = said
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
