"""The assignments of all profiling workers."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")

from situate.profiling.bench import Bench  # noqa: E402
from situate.profiling.plain_step import TRANSFER_SIZES, round_trips  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.memory import mapped  # noqa: E402
from situate.runtime.model_state.state import Entry  # noqa: E402
from situate.runtime.subject import Subject, find_subject  # noqa: E402

DEVICES = [RealDevice("a", "cpu", 1), RealDevice("b", "cpu", 2)]


@pytest.fixture
def bench(subject: Subject) -> Bench:
    return Bench(subject, DEVICES, round_trips(2))


# Memory, channels and clocks.
def test_every_device_has_the_model_and_the_inputs_in_memory_of_its_own(
    bench: Bench, subject: Subject
) -> None:
    raw = mapped(bench.block)
    starts = set()
    for assignment in bench.assignments:
        values = [Entry.at(places, raw).value for places in assignment.places.state]
        for parameter in subject.model.parameters():
            assert any(torch.equal(parameter, v) for v in values if v.shape == parameter.shape)
        for place, state_values in zip(assignment.places.inputs, subject.inputs, strict=True):
            assert torch.equal(place.view(raw), state_values)
        starts.add(assignment.places.inputs[0].offset)
    assert len(starts) == len(DEVICES)


def test_channels_and_flags_are_common(bench: Bench) -> None:
    first, second = (assignment.places for assignment in bench.assignments)
    assert first.slots == second.slots
    assert first.flags == second.flags
    assert len(first.slots) == 2 * (1 + len(TRANSFER_SIZES))


def test_threads_and_clocks_follow_the_device(bench: Bench) -> None:
    assert [assignment.threads for assignment in bench.assignments] == [1, 2]
    assert [assignment.share.clock for assignment in bench.assignments] == [
        "thread_time",
        "perf_counter",
    ]


def test_operators_of_a_users_own_come_with_their_modules() -> None:
    bench = Bench(find_subject("tests.runtime.misbehaving:model_parts"), DEVICES, [])
    assert [assignment.modules for assignment in bench.assignments] == [
        ("tests.runtime.misbehaving",)
    ] * 2


# Repeated steps leave the model unchanged, and the memory is released.
def test_measuring_does_not_train(bench: Bench) -> None:
    assert [
        group["lr"] for assignment in bench.assignments for group in assignment.hyperparameters
    ] == [0.0, 0.0]


def test_the_block_goes_with_the_bench(subject: Subject) -> None:
    bench = Bench(subject, DEVICES, [])
    block = bench.block
    os.fstat(block)
    bench.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(block)
