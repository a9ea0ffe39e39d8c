"""The C library's memory: large tensors are freed and allocated anew thousands of times a step, and
each time the kernel clears their pages. Kept, they are cleared once."""

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
"""Pieces of memory that glibc maps one by one, unless it is told otherwise."""

DEFAULT_TRIM_THRESHOLD = 2**26
"""Free bytes that glibc's own rule comes to keep where large tensors are freed."""


def keep_freed_memory() -> None:
    """Let this process keep what it frees, for what it allocates next (glibc's malloc)."""
    _set(0, INT_MAX)


def return_freed_memory() -> None:
    """Let this process return what it frees to the system again, also what it kept. glibc does not
    say what was set before, and these numbers no longer follow from what is freed."""
    _set(DEFAULT_MMAP_MAX, DEFAULT_TRIM_THRESHOLD)
    _call("malloc_trim", 0)


def _set(mmap_max: int, trim_threshold: int) -> None:
    _call("mallopt", M_MMAP_MAX, mmap_max)
    _call("mallopt", M_TRIM_THRESHOLD, trim_threshold)


def _call(name: str, *arguments: int) -> None:
    """Call a function of the library, if there is one of this name."""
    if function := getattr(LIBRARY, name, None):
        function(*arguments)


LOG_LEVEL_VARIABLE = "KINETO_LOG_LEVEL"
"""The environment variable that says what the profiler tells."""

MemoryChange = tuple[float, int]
"""When, on the clock of `StepRecord`, and by how many bytes what is allocated changed."""


def record_memory(run: Callable[[], StepRecord], device: torch.device) -> StepRecord:
    """Run a step under PyTorch's profiler, and say what it, and each op that it timed, had
    allocated at most on a device."""
    from torch.autograd.profiler import profile

    with _silent(), profile(use_cpu=True, profile_memory=True) as profiler:
        record = run()
    since = time.time_ns() - time.perf_counter_ns()
    events = profiler.kineto_results.events()
    memory = (e for e in events if e.name() == "[memory]" and _of(e.device_type(), device))
    changes = sorted(((e.start_ns() - since) / 1e9, e.nbytes()) for e in memory)
    return replace(record, peak=_peak(changes), allocated=_by_op(record, changes))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """The profiler would write two lines to stderr."""
    is_set = LOG_LEVEL_VARIABLE in os.environ
    os.environ.setdefault(LOG_LEVEL_VARIABLE, "99")
    try:
        yield
    finally:
        if not is_set:
            del os.environ[LOG_LEVEL_VARIABLE]


def _of(kind: Any, device: torch.device) -> bool:
    """True if a kind of device, as the profiler has it, is this one's."""
    return bool(kind.name == device.type.upper())


def _peak(changes: Iterable[MemoryChange]) -> int:
    total = peak = 0
    for _, change in changes:
        total += change
        peak = max(peak, total)
    return peak


def _by_op(record: StepRecord, changes: Sequence[MemoryChange]) -> dict[int, int]:
    """Bytes that each op had allocated at most, beyond those when it began."""
    times = [time for time, _ in changes]
    return {
        op: _peak(changes[bisect_right(times, start) : bisect_right(times, record.op_ends[op])])
        for op, start in record.op_starts.items()
    }
