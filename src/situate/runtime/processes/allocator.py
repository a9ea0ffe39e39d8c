"""Memory of a process: the C library's policy for freed memory, and PyTorch's allocations in a
step.

A step frees and allocates large tensors thousands of times. If the process returns freed memory,
the kernel clears its pages each time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from situate.runtime.device import StepRecord

if TYPE_CHECKING:
    import torch


LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
INT_MAX = 2**31 - 1

DEFAULT_MMAP_MAX = 65536
"""glibc's default for the number of separately mapped allocations."""

DEFAULT_TRIM_THRESHOLD = 2**26
"""Free bytes that glibc's adaptive rule ends up keeping for large tensors."""


LOG_LEVEL_VARIABLE = "KINETO_LOG_LEVEL"
"""The environment variable for the profiler's log level."""

MemoryChange = tuple[float, int]
"""A time on the clock of `StepRecord`, and the change of the allocated bytes."""


def keep_freed_memory() -> None:
    """Let this process keep freed memory for later allocations (glibc's malloc)."""
    # No allocation gets a mapping of its own, and the heap never shrinks.
    _set(0, INT_MAX)


def return_freed_memory() -> None:
    """Let this process return freed memory to the system again, including the memory it kept.

    glibc does not report its earlier settings, and these do not adapt any more.
    """
    _set(DEFAULT_MMAP_MAX, DEFAULT_TRIM_THRESHOLD)
    _call("malloc_trim", 0)


def _set(mmap_max: int, trim_threshold: int) -> None:
    _call("mallopt", M_MMAP_MAX, mmap_max)
    _call("mallopt", M_TRIM_THRESHOLD, trim_threshold)


def _call(name: str, *arguments: int) -> None:
    """Call a function of the library, if it exists."""
    if function := getattr(LIBRARY, name, None):
        function(*arguments)


def record_memory(run: Callable[[], StepRecord], device: torch.device) -> StepRecord:
    """Run a step under PyTorch's profiler; the record has the peak allocation of the step and of
    each timed op on a device."""
    from torch.autograd.profiler import profile

    with _silent(), profile(use_cpu=True, profile_memory=True) as profiler:
        record = run()
    # The profiler stamps events by the wall clock; records use the monotonic clock.
    since = time.time_ns() - time.perf_counter_ns()
    events = profiler.kineto_results.events()
    memory = (e for e in events if e.name() == "[memory]" and _of(e.device_type(), device))
    changes = sorted(((e.start_ns() - since) / 1e9, e.nbytes()) for e in memory)
    return replace(record, peak=_peak(changes), allocated=_by_op(record, changes))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """A block without the profiler's two lines on stderr."""
    is_set = LOG_LEVEL_VARIABLE in os.environ
    os.environ.setdefault(LOG_LEVEL_VARIABLE, "99")
    try:
        yield
    finally:
        if not is_set:
            del os.environ[LOG_LEVEL_VARIABLE]


def _of(kind: Any, device: torch.device) -> bool:
    """True if the profiler's device kind is this device's."""
    return bool(kind.name == device.type.upper())


def _peak(changes: Iterable[MemoryChange]) -> int:
    total = peak = 0
    for _, change in changes:
        total += change
        peak = max(peak, total)
    return peak


def _by_op(record: StepRecord, changes: Sequence[MemoryChange]) -> dict[int, int]:
    """Most bytes that each op had allocated beyond those at its start."""
    times = [time for time, _ in changes]
    return {
        op: _peak(changes[bisect_right(times, start) : bisect_right(times, record.op_ends[op])])
        for op, start in record.op_starts.items()
    }
