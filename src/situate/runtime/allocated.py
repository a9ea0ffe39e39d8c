"""What a step allocates, as PyTorch's allocator reports it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from situate.runtime.device import Ran


def with_peak(run: Callable[[], Ran]) -> Ran:
    """Run a step under PyTorch's profiler, and say what it had allocated at most."""
    from torch.profiler import ProfilerActivity, profile

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it would write two lines to stderr
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        ran = run()
    events = profiler.profiler.kineto_results.events()
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    total = peak = 0
    for _, change in sorted(changes, key=lambda change: change[0]):
        total += change
        peak = max(peak, total)
    return replace(ran, peak=peak)
