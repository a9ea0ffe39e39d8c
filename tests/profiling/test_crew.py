"""Processes that measure: told alone what to run, named when they fail, gone in the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from situate.errors import SituateError
from situate.profiling.bench import Bench
from situate.profiling.crew import Crew
from situate.profiling.pairs import round_trips
from situate.profiling.subject import Subject
from situate.runtime.hardware import RealDevice

DEVICES = [RealDevice("cpu:0", "cpu", 1), RealDevice("cpu:1", "cpu", 1)]


@pytest.fixture(scope="module")
def crew(subject: Subject) -> Iterator[Crew]:
    with Crew(DEVICES) as crew:
        bench = Bench(subject, DEVICES, round_trips(2))
        crew.assign(bench.hellos, bench.block)
        yield crew


def test_only_those_that_are_told_run(crew: Crew) -> None:
    assert crew.run([1], timed=True).keys() == {1}
    assert crew.run([0, 1], timed=False).keys() == {0, 1}


def test_the_timed_step_times_every_op_of_the_program(crew: Crew, subject: Subject) -> None:
    ran = crew.run([0], timed=True)[0]
    assert ran.ended.keys() >= set(range(len(subject.program.graph.ops)))
    assert all(ran.began[op] <= ran.ended[op] for op in ran.ended)


def test_the_plain_step_goes_to_and_fro(crew: Crew, subject: Subject) -> None:
    ran = crew.run([0, 1], timed=False)
    trips = range(len(subject.program.graph.ops), len(subject.program.graph.ops) + 5)
    assert all(ran[0].ended[op] > ran[0].began[op] for op in trips)
    assert not set(trips) & ran[1].ended.keys()


def test_what_fails_on_a_device_names_it(subject: Subject) -> None:
    bench = Bench(subject, DEVICES[:1], [])
    (hello,) = bench.hellos
    wrong = replace(hello, share=replace(hello.share, text="def step():\n    1 / 0\n"))
    with Crew(DEVICES[:1]) as crew:
        crew.assign([wrong], bench.block)
        with pytest.raises(SituateError, match="device 'cpu:0': error: ZeroDivisionError"):
            crew.run([0], timed=False)
        os.kill(crew.pids[0], signal.SIGKILL)
        with pytest.raises(SituateError, match=r"device 'cpu:0': its process ended \(SIGKILL\)"):
            crew.run([0], timed=False)


def test_nothing_is_left_running() -> None:
    with Crew(DEVICES) as crew:
        pids = crew.pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
