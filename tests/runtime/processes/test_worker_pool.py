"""A pool of workers, which execute other programs here."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from situate.runtime.processes import worker_pool
from situate.runtime.processes.messages import OutOfMemory, StepFailed, WorkerEnded
from situate.runtime.processes.worker_pool import WorkerPool
from tests.processes import gone, left_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

CONNECTED = """
import os, subprocess, sys, time
from multiprocessing.connection import Connection
from situate.runtime.processes.messages import FailureReport
parent = Connection(int(sys.argv[1]))
"""
CHILD = "child = subprocess.Popen(['sleep', '600']); parent.send([os.getpid(), child.pid])"
NAME = "os.environ['SITUATE_DEVICE']"


@pytest.fixture
def executing():
    """Starts a pool of workers that execute this, one for each of these devices."""
    pools = []

    def start(text, *names):
        pools.append(pool := WorkerPool(CONNECTED + text))
        for name in names or ["gpu0"]:
            pool.start(name, 1, ["a", "b"])
        return pool

    yield start
    for pool in pools:
        pool.end()


# Answers and their order.
def test_it_hears_and_answers(executing):
    pool = executing(f"parent.send([parent.recv(), *sys.argv[2:], {NAME}])")
    pool.workers[0].send("hello")
    assert pool.answers(pool.workers) == [["hello", "a", "b", "gpu0"]]


def test_answers_come_in_the_order_that_is_asked_for(executing):
    pool = executing(f"time.sleep(0.1 * ({NAME} == 'a')); parent.send({NAME})", "a", "b")
    assert pool.answers(pool.workers) == ["a", "b"]


# Workers that end, hang or fail.
def test_how_a_process_ended_is_said(executing):
    pool = executing("sys.exit(7)")
    with pytest.raises(WorkerEnded, match="device 'gpu0': its process ended with exit status 7"):
        pool.answers(pool.workers)
    pool = executing("import signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(WorkerEnded, match="ended by SIGSEGV") as raised:
        pool.answers(pool.workers)
    assert raised.value.status == -signal.SIGSEGV


def test_a_process_that_hung_up_and_lives_is_not_waited_for(executing, monkeypatch):
    monkeypatch.setattr(worker_pool, "GRACE_SECONDS", 0.1)
    pool = executing(CHILD + "; parent.close(); time.sleep(600)")
    (numbers,) = pool.answers(pool.workers)
    with pytest.raises(WorkerEnded, match="its process hung up"):
        pool.answers(pool.workers)
    pool.end()
    assert left_of(numbers) == []


def test_a_worker_that_says_nothing_in_time_is_named(executing):
    pool = executing(f"parent.send(0) if {NAME} == 'a' else time.sleep(600)", "a", "b")
    with pytest.raises(StepFailed, match=r"^device 'b': its process did not answer within 2 s$"):
        pool.answers(pool.workers, limit=2)


def test_a_device_that_failed_is_named_in_one_line(executing):
    pool = executing(r"parent.send(FailureReport('out_of_memory', 'too much\nat 0x1'))")
    with pytest.raises(OutOfMemory, match=r"^device 'gpu0': out of memory \(too much\): end other"):
        pool.answers(pool.workers)
    pool = executing("parent.send(FailureReport('error', ''))")
    with pytest.raises(StepFailed, match=r"^device 'gpu0': error$"):
        pool.answers(pool.workers)


# After a failure, and at the end.
def test_answers_that_are_missing_after_a_failure_are_not_heard_later(executing):
    failing = "parent.send(FailureReport('error', ''))"
    first = f"{failing} if {NAME} == 'a' else (parent.recv(), parent.send(1))"
    pool = executing(first + "; parent.recv(); parent.send(2); parent.recv()", "a", "b")
    with pytest.raises(StepFailed):
        pool.answers(pool.workers)
    pool.workers[1].send("go on")
    pool.drain()
    for worker in pool.workers:
        worker.send("again")
    assert pool.answers(pool.workers) == [2, 2]


def test_the_answers_that_are_missing_are_waited_for_in_vain_only_so_long(executing, monkeypatch):
    monkeypatch.setattr(worker_pool, "GRACE_SECONDS", 0.1)
    pool = executing(f"{NAME} == 'a' or time.sleep(600)", "a", "b")
    with pytest.raises(WorkerEnded):
        pool.answers(pool.workers)
    pool.drain()


def test_a_waiting_thread_notices_the_kill(executing):
    pool = executing("time.sleep(600)")
    pool.kill()
    with pytest.raises(WorkerEnded, match="ended by SIGKILL"):
        pool.answers(pool.workers)


def test_nobody_listens_once_the_pool_is_ended(executing):
    pool = executing(CHILD + "; time.sleep(600)")
    (worker,) = pool.workers
    (numbers,) = pool.answers(pool.workers)
    pool.end()
    worker.send("hello")
    worker.kill()
    assert len(numbers) == 2
    assert left_of(numbers) == []
    assert pool.workers == []


def test_nothing_is_left_of_a_pool_that_nobody_refers_to():
    pool = WorkerPool("import time; time.sleep(600)")
    number = pool.start("gpu0", 1).process.pid
    del pool
    assert gone(number)
    assert number != os.getpid()
