"""The C library's memory: large tensors are freed and allocated anew thousands of times a step, and
each time the kernel clears their pages. Kept, they are cleared once."""

from __future__ import annotations

import contextlib
import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
LARGEST = 2**31 - 1


def keep_freed_memory() -> None:
    """Let this process keep what it frees, for what it allocates next (glibc's malloc)."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):
            library = ctypes.CDLL(None)
            library.mallopt(M_MMAP_MAX, 0)
            library.mallopt(M_TRIM_THRESHOLD, LARGEST)
