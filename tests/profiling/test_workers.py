"""Profiling processes run steps alone, are named when they fail, and end in the end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from situate.errors import SituateError
from situate.profiling import workers as profiling_workers
from situate.profiling.bench import Bench
from situate.profiling.plain_step import round_trips
from situate.profiling.workers import ProfilingWorkers
from situate.runtime.hardware import RealDevice
from situate.runtime.subject import Subject
from tests.processes import gone, interrupt_starts, left_of

DEVICES = [RealDevice("cpu:0", "cpu", 1), RealDevice("cpu:1", "cpu", 1)]


@pytest.fixture(scope="module")
def workers(subject: Subject) -> Iterator[ProfilingWorkers]:
    with ProfilingWorkers(DEVICES) as workers:
        bench = Bench(subject, DEVICES, round_trips(2))
        workers.assign(bench.assignments, bench.block)
        yield workers


# Steps of some devices.
def test_only_those_that_are_told_run(workers: ProfilingWorkers) -> None:
    assert workers.run([1], timed=True).keys() == {1}
    assert workers.run([0, 1], timed=False).keys() == {0, 1}


def test_the_timed_step_times_every_op_of_the_program(
    workers: ProfilingWorkers, subject: Subject
) -> None:
    records = workers.run([0], timed=True)[0]
    assert records.op_ends.keys() >= set(range(len(subject.program.graph.ops)))
    assert all(records.op_starts[op] <= records.op_ends[op] for op in records.op_ends)


def test_the_plain_step_goes_to_and_fro(workers: ProfilingWorkers, subject: Subject) -> None:
    records = workers.run([0, 1], timed=False)
    trips = range(len(subject.program.graph.ops), len(subject.program.graph.ops) + 5)
    assert all(records[0].op_ends[op] > records[0].op_starts[op] for op in trips)
    assert not set(trips) & records[1].op_ends.keys()


@pytest.mark.parametrize(("cores", "at_once"), [(1, 1), (2, 1), (3, 2)])
def test_one_core_is_left_to_who_starts_them(
    cores: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situate.profiling.workers.usable_cpus", lambda: cores)
    with ProfilingWorkers(DEVICES) as workers:
        assert len(workers.pids) == at_once
        workers.start_others()
        assert len(workers.pids) == 2


# Failures and kills.
def test_a_failure_names_its_device(subject: Subject) -> None:
    bench = Bench(subject, DEVICES[:1], [])
    (assignment,) = bench.assignments
    wrong = replace(assignment, share=replace(assignment.share, text="def step():\n    1 / 0\n"))
    with ProfilingWorkers(DEVICES[:1]) as workers:
        workers.assign([wrong], bench.block)
        with pytest.raises(SituateError, match="device 'cpu:0': ZeroDivisionError"):
            workers.run([0], timed=False)


@pytest.mark.parametrize("waited", [True, False])
def test_a_process_that_was_killed_before_a_step_is_named(subject: Subject, waited: bool) -> None:
    """Gone or not when it is told to run."""
    bench = Bench(subject, DEVICES[:1], [])
    with ProfilingWorkers(DEVICES[:1]) as workers:
        workers.assign(bench.assignments, bench.block)
        os.kill(workers.pids[0], signal.SIGKILL)
        if waited:
            os.waitid(os.P_PID, workers.pids[0], os.WEXITED | os.WNOWAIT)
        with pytest.raises(SituateError, match=r"device 'cpu:0': its process ended by SIGKILL"):
            workers.run([0], timed=False)


def test_a_process_that_is_killed_on_the_way_leaves_nobody_waiting(subject: Subject) -> None:
    """The first device waits for a tensor of the second, which cannot send it any more."""
    bench = Bench(subject, DEVICES, round_trips(2))
    with ProfilingWorkers(DEVICES) as workers:
        workers.assign(bench.assignments, bench.block)
        pids = workers.pids
        os.kill(pids[1], signal.SIGSTOP)
        threading.Timer(0.5, os.kill, (pids[1], signal.SIGKILL)).start()
        with pytest.raises(SituateError, match=r"device 'cpu:1': its process ended by SIGKILL"):
            workers.run([0, 1], timed=False)
        assert left_of(pids) == []


def test_a_device_that_cannot_have_its_share_says_why(subject: Subject) -> None:
    bench = Bench(subject, DEVICES, round_trips(2))
    assignments = [
        replace(assignment, modules=("no_such_module",)) for assignment in bench.assignments
    ]
    with ProfilingWorkers(DEVICES) as workers:
        workers.start_others()
        pids = workers.pids
        with pytest.raises(SituateError, match=r"'cpu:[01]': .*No module .*no_such_module"):
            workers.assign(assignments, bench.block)
        assert left_of(pids) == []


# Nothing survives.
def test_nothing_is_left_running() -> None:
    with ProfilingWorkers(DEVICES) as workers:
        pids = workers.pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_nothing_is_left_of_those_that_start_when_ctrl_c_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiling_workers, "STEP_WORKER", "import time; time.sleep(600)")
    numbers = interrupt_starts(monkeypatch, times=2)
    with pytest.raises(KeyboardInterrupt):
        ProfilingWorkers(DEVICES)
    assert len(numbers) == 1
    assert all(map(gone, numbers))
