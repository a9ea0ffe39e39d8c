"""Freed memory is kept by the process, which goes on as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from situate.runtime.processes import allocator

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


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_what_is_freed_is_not_cleared_again() -> None:
    said = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    before, after = map(int, said.stdout.split())
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
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    while_open, returned, closed, again = map(float, said.stdout.split())
    assert min(while_open, returned, again) > 0.9
    assert closed < 0.1


@pytest.mark.parametrize("library", [None, object()])
def test_other_systems_go_on(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    monkeypatch.setattr(allocator, "LIBRARY", library)
    allocator.keep_freed_memory()
    allocator.return_freed_memory()
