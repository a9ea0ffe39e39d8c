"""Memory that a step allocates, as PyTorch's allocator reports it."""

from __future__ import annotations

import contextlib
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from situate.runtime.device import Ran

if TYPE_CHECKING:
    import torch

LOG_LEVEL_VARIABLE = "KINETO_LOG_LEVEL"
"""The environment variable that says what the profiler tells."""

Change = tuple[float, int]
"""When, on the clock of `Ran`, and by how many bytes what is allocated changed."""


def with_memory(run: Callable[[], Ran], device: torch.device) -> Ran:
    """Run a step under PyTorch's profiler, and say what it, and each op that it timed, had
    allocated at most on a device."""
    from torch.autograd.profiler import profile

    with _silent(), profile(use_cpu=True, profile_memory=True) as profiler:
        ran = run()
    since = time.time_ns() - time.perf_counter_ns()
    events = profiler.kineto_results.events()
    memory = (e for e in events if e.name() == "[memory]" and _of(e.device_type(), device))
    changes = sorted(((e.start_ns() - since) / 1e9, e.nbytes()) for e in memory)
    return replace(ran, peak=_peak(changes), allocated=_by_op(ran, changes))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """The profiler would write two lines to stderr."""
    given = LOG_LEVEL_VARIABLE in os.environ
    os.environ.setdefault(LOG_LEVEL_VARIABLE, "99")
    try:
        yield
    finally:
        if not given:
            del os.environ[LOG_LEVEL_VARIABLE]


def _of(kind: Any, device: torch.device) -> bool:
    """True if a kind of device, as the profiler has it, is this one's."""
    return bool(kind.name == device.type.upper())


def _peak(changes: Iterable[Change]) -> int:
    total = peak = 0
    for _, change in changes:
        total += change
        peak = max(peak, total)
    return peak


def _by_op(ran: Ran, changes: Sequence[Change]) -> dict[int, int]:
    """Bytes that each op had allocated at most, beyond those when it began."""
    times = [time for time, _ in changes]
    return {
        op: _peak(changes[bisect_right(times, began) : bisect_right(times, ran.ended[op])])
        for op, began in ran.began.items()
    }
