"""Errors of short memory, in one line with a remedy."""

from __future__ import annotations

import errno
import resource

import pytest

from situate.cli.memory import memory_line

TORCH = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:131] . DefaultCPUAllocator: can't allocate memory: you tried "
    "to allocate 4096 bytes.\nmore"
)


@pytest.mark.parametrize(
    "error",
    [MemoryError(), MemoryError("std::bad_alloc"), OSError(errno.ENOMEM, "no"), TORCH],
)
def test_short_memory_is_named_with_a_remedy(error):
    line = memory_line(error)
    assert line is not None
    assert line.startswith("out of memory")
    assert "\n" not in line


def test_a_limit_is_named(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**30, 2**30))
    assert "may use 1 GiB: raise that limit (ulimit -v)" in str(memory_line(MemoryError()))


@pytest.mark.parametrize("error", [OSError(errno.EROFS, "no"), RuntimeError("else"), KeyError()])
def test_other_errors_are_none_of_memory(error):
    assert memory_line(error) is None
