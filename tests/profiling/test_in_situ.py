"""Measurements of a whole step by workers."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from unittest.mock import Mock

import pytest

pytest.importorskip("torch")

from situate.data.cluster import Device
from situate.data.op_classes import op_class
from situate.errors import SituateError
from situate.profiling import in_situ
from situate.profiling.in_situ import InSitu, distinct_devices
from situate.profiling.workers import ProfilingWorkers
from situate.runtime.device import StepRecord
from situate.runtime.hardware import RealDevice
from situate.runtime.subject import Subject

CPU = Device("a", "cpu", "Xeon", flops={"float32": 1e10}, bandwidth=1e10, threads=1)


# Real workers on a small model.
def test_the_first_of_equal_devices_stands_for_all() -> None:
    other = Device("c", "cpu", "Xeon", threads=2)
    assert distinct_devices([CPU, Device("b", "cpu", "Xeon", threads=1), other]) == [0, 2]


@pytest.fixture(scope="module")
def records_by_device(subject: Subject) -> InSitu:
    devices = [CPU, Device("b", "cpu", "Xeon", threads=1)]
    reals = [RealDevice(device.name, "cpu", 1) for device in devices]
    with pytest.MonkeyPatch.context() as patch, ProfilingWorkers(reals) as workers:
        patch.setattr(in_situ, "SECONDS_PER_KIND", 0.05)
        return InSitu(workers, subject, devices, reals)


def test_memory_that_no_process_takes_is_let_go(subject: Subject) -> None:
    workers = Mock(ProfilingWorkers)
    workers.assign.side_effect = SituateError
    with pytest.raises(SituateError):
        InSitu(workers, subject, [CPU], [RealDevice("a", "cpu", 1)])
    (_, block), _ = workers.assign.call_args
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(block)


def test_every_signature_is_timed_on_one_device_of_each_sort(
    records_by_device: InSitu, subject: Subject
) -> None:
    (device,) = records_by_device.device_costs()
    ops = subject.program.graph.ops
    assert (device.name, device.threads, device.flops) == ("a", 1, {"float32": 1e10})
    assert device.seconds.keys() == {op.signature for op in ops if op.signature}
    assert all(0 <= t.low <= t.high for t in device.seconds.values())
    assert 0 < device.launch < 1e-2


def test_classes_are_fitted_and_compared_with_others_at_work(
    records_by_device: InSitu, subject: Subject
) -> None:
    (device,) = records_by_device.device_costs()
    classes = {op_class(op.kind) for op in subject.program.graph.ops if op.signature}
    assert device.contention.keys() <= classes
    assert {"matmul", "update"} <= device.efficiency.keys() <= classes
    assert all(factor >= 1 for factor in device.contention.values())


def test_both_directions_are_links(records_by_device: InSitu) -> None:
    links, synchronisation = records_by_device.links()
    assert {(link.source, link.target) for link in links} == {("a", "b"), ("b", "a")}
    assert all(0 < link.bandwidth < math.inf for link in links)
    assert 0 < synchronisation < 1


# Repetitions, by scripted workers.
@pytest.mark.parametrize("budget", [0.0, 0.05])
def test_a_step_is_repeated_an_odd_number_of_times_and_thrice_at_least(
    budget: float, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_situ, "SECONDS_PER_KIND", budget)
    with ProfilingWorkers([RealDevice("a", "cpu", 1)]) as workers:
        (device,) = InSitu(workers, subject, [CPU], [RealDevice("a", "cpu", 1)]).device_costs()
    ops = Counter(op.signature for op in subject.program.graph.ops)
    steps = {timing.count / ops[name] for name, timing in device.seconds.items()}
    assert len(steps) == 1
    assert steps < {3, 5, 7, 9, 11, 13, 15, 17, 19, 21}


class ColdAtFirst(ProfilingWorkers):
    """Devices whose first step takes a thousand times as long."""

    cold = True

    def run(
        self, members: Iterable[int], timed: bool, memory: bool = False
    ) -> dict[int, StepRecord]:
        records_by_device = super().run(members, timed, memory)
        if timed and self.cold:
            self.cold = False
            return {
                i: replace(record, op_ends=_later(record))
                for i, record in records_by_device.items()
            }
        return records_by_device


def _later(record: StepRecord) -> dict[int, float]:
    return {
        op: record.op_starts[op] + 1000 * (end - record.op_starts[op])
        for op, end in record.op_ends.items()
    }


def test_contention_is_measured_warm_however_long_a_step_takes(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_situ, "LONG_STEP_SECONDS", 0.0)
    monkeypatch.setattr(in_situ, "SECONDS_PER_KIND", 0.0)
    reals = [RealDevice("a", "cpu", 1), RealDevice("b", "cpu", 1)]
    devices = [CPU, Device("b", "cpu", "Xeon", threads=1)]
    with ColdAtFirst(reals) as workers:
        (device,) = InSitu(workers, subject, devices, reals).device_costs()
    assert {"matmul", "update"} <= device.contention.keys()
    assert max(device.contention.values()) < 100


def test_a_long_step_is_measured_op_by_op_and_never_together(subject: Subject) -> None:
    reals = [RealDevice("a", "cpu", 1), RealDevice("b", "cpu", 1)]
    devices = [CPU, Device("b", "cpu", "Xeon", threads=1)]
    with pytest.MonkeyPatch.context() as patch, ProfilingWorkers(reals) as workers:
        patch.setattr(in_situ, "is_long", lambda graph, device: True)
        (device,) = InSitu(workers, subject, devices, reals).device_costs()
    assert device.seconds.keys() == {op.signature for op in subject.program.graph.ops} - {""}
    assert (device.contention, device.wall) == ({}, 1.0)


def test_an_op_that_cannot_run_alone_is_left_to_the_roofline(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long step, of which made-up numbers may be none that an op takes."""
    monkeypatch.setattr(in_situ, "is_long", lambda graph, device: True)
    monkeypatch.setattr(in_situ, "seconds_alone", lambda program, real: {})
    with ProfilingWorkers([RealDevice("a", "cpu", 1)]) as workers:
        (device,) = InSitu(workers, subject, [CPU], [RealDevice("a", "cpu", 1)]).device_costs()
    assert (device.seconds, device.wall) == ({}, 1.0)
