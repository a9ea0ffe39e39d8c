"""The process of a device, whatever it does; here it executes something else."""

from __future__ import annotations

import signal
import sys

import pytest

from situate.evaluators import hardware_process
from situate.evaluators.hardware_process import DeviceProcess, Ended
from situate.runtime.processes.launch import Started
from situate.runtime.processes.team import OutOfMemory, StepFailed
from tests.processes import left_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

CONNECTED = """
import os, subprocess, sys, time
from multiprocessing.connection import Connection
from situate.runtime.processes.worker import Failed
parent = Connection(int(sys.argv[1]))
"""
CHILD = "child = subprocess.Popen(['sleep', '600']); parent.send([os.getpid(), child.pid])"


@pytest.fixture
def started():
    """Ends them."""
    found = Started()
    yield found
    found.end()


@pytest.fixture
def executing(monkeypatch, started):
    """Starts a process that executes this."""

    def start(text):
        monkeypatch.setattr(hardware_process, "START_DEVICE", CONNECTED + text)
        return DeviceProcess("gpu0", 1, ["a", "b"], started)

    return start


def test_it_hears_and_answers(executing):
    process = executing("parent.send([parent.recv(), *sys.argv[2:], os.environ['SITUATE_DEVICE']])")
    process.say("hello")
    assert process.answer() == ["hello", "a", "b", "gpu0"]


def test_how_it_ended_is_said(executing):
    with pytest.raises(Ended, match="device 'gpu0': its process ended with exit status 7"):
        executing("sys.exit(7)").answer()
    with pytest.raises(Ended, match="ended by SIGSEGV") as raised:
        executing("import signal; os.kill(os.getpid(), signal.SIGSEGV)").answer()
    assert raised.value.status == -signal.SIGSEGV


def test_one_that_hung_up_and_lives_is_not_waited_for(executing, started, monkeypatch):
    monkeypatch.setattr(hardware_process, "GRACE", 0.1)
    process = executing(CHILD + "; parent.close(); time.sleep(600)")
    numbers = process.answer()
    with pytest.raises(Ended, match="its process hung up"):
        process.answer()
    started.end()
    assert left_of(numbers) == []


def test_what_it_says_of_a_failure_is_one_line(executing):
    with pytest.raises(OutOfMemory, match=r"^device 'gpu0': too much$"):
        executing("parent.send(Failed('out_of_memory', 'too much\\nat 0x1'))").answer()
    with pytest.raises(StepFailed, match=r"^device 'gpu0': error$"):
        executing("parent.send(Failed('error', ''))").answer()


def test_nobody_listens_once_it_is_ended(executing, started):
    process = executing(CHILD + "; time.sleep(600)")
    numbers = process.answer()
    started.end()
    process.say("hello")
    assert len(numbers) == 2
    assert left_of(numbers) == []
