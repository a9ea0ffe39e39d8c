"""Workers in processes end, whatever happens to them or to this process."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from situate.errors import SituateError
from situate.evaluators.workers.machine import WorkerMachine
from situate.evaluators.workers.messages import Failure, Hello, Message, Ready, Task
from situate.evaluators.workers.processes import ProcessWorkers
from tests.evaluators.workers.faulty import Counting, EndsAt

ROOT = Path(__file__).parents[3]
TASK = Task(np.zeros((1, 2), np.int32), np.array([0]))


@contextmanager
def _workers(evaluator: object) -> Iterator[ProcessWorkers]:
    workers_made = ProcessWorkers(pickle.dumps(evaluator))
    try:
        yield workers_made
    finally:
        workers_made.close()
        workers_made.close()  # nothing is left to be ended


def _next(workers: ProcessWorkers) -> Message:
    [(worker, reply)] = workers.wait(None)
    assert worker == 0
    return reply


def _ready(workers: ProcessWorkers) -> None:
    workers.start(0)
    assert isinstance(_next(workers), Hello)
    workers.equip(0)
    assert _next(workers) == Ready()


# Single workers that stop, fail, or get large messages.
@pytest.mark.usefixtures("interpreters")
def test_a_worker_that_is_stopped_while_it_starts_says_nothing(tmp_path: Path) -> None:
    with _workers(Counting(tmp_path)) as workers:
        workers.start(0)
        workers.stop(0)
        assert workers.wait(0) == []
        _ready(workers)


@pytest.mark.parametrize(
    ("ending", "message"), [(SystemExit, "ended with exit status 3"), (KeyboardInterrupt, "SIGINT")]
)
def test_an_evaluator_that_ends_its_process_fails_and_does_not_end_this_one(
    ending: type[BaseException], message: str, tmp_path: Path
) -> None:
    with _workers(EndsAt(tmp_path, ending=ending)) as workers:
        _ready(workers)
        workers.give(0, TASK)
        reply = _next(workers)
    assert isinstance(reply, Failure)
    assert message in reply.reason


@pytest.mark.usefixtures("interpreters")
def test_a_large_evaluator_does_not_wait_for_a_worker_that_starts(tmp_path: Path) -> None:
    """More than the connection holds."""
    with _workers(Large(tmp_path)) as workers:
        for worker in range(2):
            workers.start(worker)
        assert len(workers._running) == 2


class Large(Counting):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ballast = np.zeros(10**6)


def test_a_large_task_does_not_wait_for_a_worker_that_is_busy(tmp_path: Path) -> None:
    """More than the connection holds, behind another and before a small one."""
    large = Task(np.zeros((1, 10**6), np.int32), np.array([1]))
    with _workers(Counting(tmp_path, 0.05)) as workers:
        _ready(workers)
        for task in (TASK, large, Task(TASK.placements, np.array([2]))):
            workers.give(0, task)
        answers = [_next(workers) for _ in range(3)]
    assert [answer.value.seconds.tolist() for answer in answers] == [[1.0], [2.0], [3.0]]  # type: ignore[union-attr]


# No process and no connection outlives the workers.
def test_too_many_workers_for_this_machine_are_refused(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with _workers(Counting(tmp_path)) as workers:
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
        try:
            with pytest.raises(SituateError, match=r"number 1 cannot be started \(Too many open"):
                workers.start(0)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        _ready(workers)


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with WorkerMachine(Counting(tmp_path), 2) as machine:
        machine.measure(np.zeros((4, 2), np.int32), 0)
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert all(not Path(f"/proc/{pid}").exists() for pid in _pids(tmp_path))


MEASURES = """
import sys
from pathlib import Path
import numpy as np
from situate.evaluators.workers.machine import WorkerMachine
from tests.evaluators.workers.faulty import Counting
with WorkerMachine(Counting(Path(sys.argv[1]), 60.0), 2) as machine:
    machine.measure(np.zeros((4, 2), np.int32), 0)
"""


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_workers_end_with_the_process_that_started_them(ending: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEASURES, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as manager:
        while len(_pids(tmp_path)) < 2:
            time.sleep(0.02)
        manager.send_signal(signal.Signals[ending])
        manager.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in _pids(tmp_path)):
        time.sleep(0.02)


def _pids(folder: Path) -> set[int]:
    """The processes that measured."""
    return {int(worker_number.name.split("-")[1]) for worker_number in folder.iterdir()}
