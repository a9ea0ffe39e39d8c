"""Freed memory is kept by the process, which goes on as before."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import resource
from situate.runtime.allocator import keep_freed_memory

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


def test_other_systems_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from situate.runtime import allocator

    monkeypatch.setattr(allocator.sys, "platform", "darwin")
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: pytest.fail("not there"))
    allocator.keep_freed_memory()
