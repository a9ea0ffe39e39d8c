"""Freed memory stays with the process, and a step's allocations are recorded."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from situate.runtime.device import StepRecord
from situate.runtime.processes import allocator
from situate.runtime.processes.allocator import record_memory

ROOT = Path(__file__).parents[3]

CODE = """
import resource
from situate.runtime.processes.allocator import keep_freed_memory

def faults(count=20, nbytes=2**24):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        bytearray(nbytes)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
keep_freed_memory()
faults()
print(before, faults())
"""


# The C library's policy.
@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_freed_memory_is_not_cleared_again() -> None:
    calls = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    before, after = map(int, calls.stdout.split())
    assert after < before / 4


RETURNS = """
from tests import branches
from tests.runtime.placing import placed_step, sgd

def held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def kept(nbytes=2**28):
    before, block = held(), bytearray(nbytes)
    block[::4096] = bytes(nbytes // 4096)
    del block
    return (held() - before) / nbytes

model, inputs, _ = branches.build()
step = placed_step(model, sgd(model.parameters()))
step(*inputs)
print(kept())
before = held()
step.close()
print((before - held()) / 2**28)
print(kept())
step(*inputs)
print(kept())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_the_callers_process_keeps_it_only_until_its_step_is_closed() -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-c", RETURNS]
    calls = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    while_open, returned, closed, again = map(float, calls.stdout.split())
    assert min(while_open, returned, again) > 0.9
    assert closed < 0.1


@pytest.mark.parametrize("library", [None, object()])
def test_other_systems_go_on(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    monkeypatch.setattr(allocator, "LIBRARY", library)
    allocator.keep_freed_memory()
    allocator.return_freed_memory()


KIB = 1 << 10


def allocating() -> StepRecord:
    """Op 0 allocates 64 KiB, 32 of which it keeps; op 1 allocates nothing."""
    began, op_end = {}, {}
    began[0] = time.perf_counter()
    bytes_kept = torch.empty(32 * KIB, dtype=torch.uint8)
    torch.empty(32 * KIB, dtype=torch.uint8)
    op_end[0] = began[1] = time.perf_counter()
    op_end[1] = time.perf_counter()
    del bytes_kept
    return StepRecord(began[0], op_end[1], 0.0, began, op_end)


# PyTorch's allocations, by its profiler.
def test_the_peak_is_the_most_that_was_allocated_at_once() -> None:
    assert record_memory(allocating, torch.device("cpu")).peak == 64 * KIB


def test_each_op_is_told_what_it_allocated() -> None:
    allocated = record_memory(allocating, torch.device("cpu")).allocated
    assert allocated[0] == 64 * KIB
    assert allocated[1] == 0


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(os.environ)
    record_memory(allocating, torch.device("cpu"))
    assert dict(os.environ) == before
    monkeypatch.setenv("KINETO_LOG_LEVEL", "3")
    record_memory(allocating, torch.device("cpu"))
    assert os.environ["KINETO_LOG_LEVEL"] == "3"


def test_allocations_of_another_device_do_not_count() -> None:
    assert record_memory(allocating, torch.device("cuda:0")).peak == 0
