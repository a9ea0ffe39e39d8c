"""The C library's memory: large tensors are freed and allocated anew thousands of times a step, and
each time the kernel clears their pages. Kept, they are cleared once."""

from __future__ import annotations

import ctypes
import sys

LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
LARGEST = 2**31 - 1

MAPPED = 65536
"""Pieces of memory that glibc maps one by one, unless it is told otherwise."""

TRIMMED = 2**26
"""Free bytes that glibc's own rule comes to keep where large tensors are freed."""


def keep_freed_memory() -> None:
    """Let this process keep what it frees, for what it allocates next (glibc's malloc)."""
    _set(0, LARGEST)


def return_freed_memory() -> None:
    """Let this process return what it frees to the system again, also what it kept. glibc does not
    say what was set before, and these numbers no longer follow from what is freed."""
    _set(MAPPED, TRIMMED)
    _call("malloc_trim", 0)


def _set(mapped: int, trimmed: int) -> None:
    _call("mallopt", M_MMAP_MAX, mapped)
    _call("mallopt", M_TRIM_THRESHOLD, trimmed)


def _call(name: str, *arguments: int) -> None:
    """Call a function of the library, if there is one of this name."""
    if function := getattr(LIBRARY, name, None):
        function(*arguments)
