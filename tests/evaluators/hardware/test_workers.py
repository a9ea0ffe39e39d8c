"""The workers of all devices: limits of time, kills, and the program of a worker."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from situate.evaluators.hardware import workers
from situate.evaluators.hardware.workers import HardwareWorkers, TimedOut, memory_kills
from situate.runtime.processes.messages import OutOfMemory, Run
from tests.processes import gone, interrupt_starts


@pytest.fixture
def start_devices(monkeypatch):
    """Starts two devices that execute this once they are ready."""
    every = []
    block = os.memfd_create("block")

    def start(text, limit=60):
        listening = (
            "import os, sys, time; from multiprocessing import reduction; "
            "from multiprocessing.connection import Connection; "
            "parent = Connection(int(sys.argv[1])); os.close(reduction.recv_handle(parent)); "
            "parent.recv(); "
        )
        monkeypatch.setattr(workers, "MEASURING_WORKER", listening + text)
        every.append(pool := HardwareWorkers(limit))
        assignment = SimpleNamespace(threads=1)
        return pool, pool.start(["cpu:0", "cpu:1"], [assignment, assignment], block, None)

    yield start
    for pool in every:
        pool.close()
    os.close(block)


# Two limits apply: until the devices are ready, and until the placement is measured.
def test_devices_that_are_not_ready_in_time_are_ended(start_devices, monkeypatch):
    monkeypatch.setattr(workers, "START_LIMIT_SECONDS", 0.3)
    with pytest.raises(TimedOut, match=r"its devices were not ready within 0.3 s"):
        start_devices("time.sleep(600)")


def test_a_placement_that_is_too_slow_is_ended(start_devices):
    _, assigned = start_devices("parent.send('ready'); parent.recv(); time.sleep(600)", limit=0.5)
    with pytest.raises(TimedOut, match=r"not measured within 0.5 s"):
        assigned.run(Run(1, False, None))


def test_answers_come_in_the_order_of_the_devices(start_devices):
    name = "os.environ['SITUATE_DEVICE']"
    wait = f"time.sleep(0.1 * ({name} == 'cpu:0'))"
    pool, assigned = start_devices(
        f"parent.send(0); parent.recv(); {wait}; parent.send({name}); parent.recv()"
    )
    assert assigned.run(Run(1, False, None)) == ["cpu:0", "cpu:1"]
    pool.finish()


def test_too_late_is_too_late_even_where_everything_was_answered(start_devices):
    pool, _ = start_devices("parent.send('ready'); time.sleep(600)", limit=0.1)
    pool._timer.join()
    with pytest.raises(TimedOut):
        pool.finish()


def test_too_late_is_too_late_even_where_the_timer_is_late_itself(start_devices, monkeypatch):
    monkeypatch.setattr(HardwareWorkers, "_expire", lambda self: None)
    pool, _ = start_devices("parent.send('ready'); time.sleep(600)", limit=0.1)
    pool._timer.join()
    with pytest.raises(TimedOut, match=r"not measured within 0.1 s"):
        pool.finish()


def test_where_no_clock_runs_nothing_is_too_late(start_devices):
    HardwareWorkers(60).finish()
    pool, _ = start_devices("parent.send('ready'); time.sleep(600)", limit=0.5)
    pool.finish()
    time.sleep(0.6)
    pool.finish()


def test_devices_that_nobody_waited_for_in_time_start_anew(start_devices):
    pool, _ = start_devices("parent.send('ready'); time.sleep(600)", limit=0.1)
    pool._timer.join()
    block = os.memfd_create("another")
    pool.start(["cpu:0"], [SimpleNamespace(threads=1)], block, None)
    os.close(block)


# Linux's counter distinguishes lack of memory from other kills.
def test_a_kill_that_linux_counts_is_for_want_of_memory(start_devices, monkeypatch, tmp_path):
    counts = tmp_path / "vmstat"
    monkeypatch.setattr(workers, "VMSTAT", counts)
    counts.write_text("nr_free_pages 5\noom_kill 3\n")
    assert memory_kills() == 3
    _, assigned = start_devices("parent.send('ready'); parent.recv(); os.kill(os.getpid(), 9)")
    counts.write_text("nr_free_pages 5\noom_kill 4\n")
    with pytest.raises(OutOfMemory, match="its process ended by SIGKILL"):
        assigned.run(Run(1, False, None))


def test_where_nothing_is_counted_there_are_none(monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "VMSTAT", tmp_path / "absent")
    assert memory_kills() == 0
    (tmp_path / "absent").write_text("not a table\n")
    assert memory_kills() == 0


# Ctrl-C at any moment of the start leaves no process and no timer.
def test_nothing_is_left_of_those_that_start_when_ctrl_c_comes(monkeypatch):
    monkeypatch.setattr(workers, "MEASURING_WORKER", "import time; time.sleep(600)")
    numbers = interrupt_starts(monkeypatch, times=2)
    pool = HardwareWorkers(60)
    with pytest.raises(KeyboardInterrupt):
        pool.start(["cpu:0"], [SimpleNamespace(threads=1)], 0, None)
    with pytest.raises(KeyboardInterrupt):
        pool.close()
    assert len(numbers) == 1
    assert all(map(gone, numbers))


def test_a_timer_that_ctrl_c_kept_from_starting_does_not_keep_processes(monkeypatch):
    class Interrupted(workers.Timer):
        def start(self):
            signal.raise_signal(signal.SIGINT)
            super().start()

    monkeypatch.setattr(workers, "Timer", Interrupted)
    pool = HardwareWorkers(60)
    with pytest.raises(KeyboardInterrupt):
        pool.start([], [], 0, None)
    pool.close()


@pytest.fixture(autouse=True)
def score(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that stands for that of Linux; this process is not set up as a worker."""
    result = tmp_path / "oom_score_adj"
    monkeypatch.setattr(workers, "Path", lambda name: tmp_path / Path(name).name)
    monkeypatch.setattr(workers, "set_up", lambda: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    return result


# The program of a worker process, run in this process.
def test_it_serves_until_its_parent_hangs_up(monkeypatch: pytest.MonkeyPatch, score: Path) -> None:
    served: list[int] = []

    def serve(parent: object) -> None:
        served.append(len(served))
        if len(served) == 3:
            raise EOFError

    monkeypatch.setattr(workers, "serve", serve)
    workers.run_worker(_connection())
    assert served == [0, 1, 2]
    assert score.read_text() == "1000"


def test_it_imports_what_may_define_operators_where_that_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported: list[str] = []

    def result(name: str) -> None:
        imported.append(name)
        if name == "absent":
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(workers, "import_module", result)
    workers.run_worker(_connection(), "absent", "present")
    assert imported == ["absent", "present"]


def _connection() -> int:
    """The descriptor of a connection whose other end is closed."""
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    return os.dup(theirs.fileno())
